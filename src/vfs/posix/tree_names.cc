// Entries that are found and made: lookup, create, mkdir, symlink, mknod, link.
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "vfs/change_rules.h"
#include "vfs/exclusive.h"
#include "vfs/file_format.h"
#include "vfs/name.h"
#include "vfs/posix/credentials.h"
#include "vfs/posix/errors.h"
#include "vfs/posix/tree.h"

namespace stag::vfs::posix {
namespace {

constexpr std::uint32_t kSetIds = 06000;

// Whether nothing was done to the object since it was made: to rename or link another one to its
// name changes that one's ctime or count of links. The slack is for file systems that set ACLs and
// labels of a new object one clock tick later.
bool is_newborn(const struct statx& stat) {
  constexpr std::int64_t kSlackSeconds = 1;
  const std::uint32_t links = S_ISDIR(stat.stx_mode) ? 2 : 1;
  if (stat.stx_nlink > links) return false;
  if ((stat.stx_mask & STATX_BTIME) == 0) return true;
  return stat.stx_ctime.tv_sec - stat.stx_btime.tv_sec <= kSlackSeconds;
}

// The kernel returns EPERM when the file system has no such objects, but also for an immutable
// directory, and for devices when the user is not root.
Failure<Status> making_error(const Object& directory) {
  const int error = errno;
  struct statx parent {};
  const bool immutable =
      ::statx(directory.path.fd(), "", AT_EMPTY_PATH, STATX_TYPE, &parent) == 0 &&
      (parent.stx_attributes & STATX_ATTR_IMMUTABLE) != 0;
  if (error == EPERM && !immutable) return Failure{Status::NotSupported};
  return Failure{status_of(error)};
}

}  // namespace

Outcome<Found> Tree::find(const Credentials& who, const Object& directory, std::string_view name,
                          std::uint64_t resolve) {
  const auto attributes = attributes_of(directory);
  if (!attributes) return Failure{attributes.error()};
  Outcome<Opened> opened = Failure{Status::Access};
  {
    const CredentialScope scope(who);
    if (scope.ok())
      opened = name == ".." ? open_parent(directory) : open_entry(directory, name, resolve);
  }
  if (!opened) return Failure{opened.error()};
  if (!is_dot_or_dot_dot(name)) remember(directory, name, opened->object->handle);
  return Found{opened->node(), *attributes};
}

Outcome<Found> Tree::lookup(const Credentials& who, const Handle& directory,
                            std::string_view name) {
  if (const auto fault = fault_of_name(name, limits_.max_name)) return Failure{*fault};
  const auto resolved = resolve_directory(directory);
  if (!resolved) return Failure{resolved.error()};
  return find(who, **resolved, name, 0);
}

// What is found has the cache evict another object, which a loop leaves to be closed and a worker
// closes: where too many wait for that, the caller has the work of it.
std::optional<Outcome<Found>> Tree::lookup_at_once(const Credentials& who, const Handle& directory,
                                                   std::string_view name) {
  if (cache_->has_too_much_to_close()) return std::nullopt;
  if (table_ != nullptr || fault_of_name(name, limits_.max_name) || is_dot_or_dot_dot(name))
    return std::nullopt;
  const ObjectRef cached = at_hand(directory);
  if (cached == nullptr || directory_fault(*cached) || !may_act_on_loop(who)) return std::nullopt;
  auto found = find(who, *cached, name, RESOLVE_CACHED);
  // Delay: not all of it is in memory.
  if (!found && found.error() == Status::Delay) return std::nullopt;
  return found;
}

// The frame of every creation: the checks, the observation of the directory, and the sync. `make`
// creates the object.
template <class Make>
Outcome<Created> Tree::make(const Handle& directory, std::string_view name,
                            const SetAttributes& attributes, Make make) {
  if (const auto fault = fault_of_new_name(name, limits_.max_name)) return Failure{*fault};
  if (const auto fault = fault_of_values(attributes)) return Failure{*fault};
  const auto resolved = resolve_directory(directory);
  if (!resolved) return Failure{resolved.error()};
  if (const auto prepared = prepare_sync(**resolved); !prepared) return Failure{prepared.error()};
  Observation observation(*this, *resolved);
  if (!observation.before()) return Failure{observation.before().error()};
  Outcome<Opened> made = make(observation.object());
  if (!made) return Failure{made.error()};
  remember(**resolved, name, made->object->handle);
  if (const auto fault = sync(observation.object())) return Failure{*fault};
  return Created{made->node(), observation.finish()};
}

// The attributes that the system call could not set while it made the object.
SetAttributes Tree::unset_after_making(const Credentials& who, const Attributes& made,
                                       const SetAttributes& wanted) {
  SetAttributes rest = wanted;
  rest.mode.reset();
  if (!can_switch_users() || who.uid != 0) {
    rest.uid.reset();
    rest.gid.reset();
  }
  const std::uint32_t mode = wanted.mode.value_or(0);
  const bool owner_changes = rest.uid || rest.gid;
  const bool lost_bits =
      (mode & kSetIds & ~made.mode) != 0 || (owner_changes && (mode & kSetIds) != 0);
  if (lost_bits && made.type != FileType::Symlink) rest.mode = mode | (made.mode & kSetIds);
  return rest;
}

// Completes a new object, or takes its name away again.
Outcome<Tree::Opened> Tree::settle(const Credentials& who, Object& directory, std::string_view name,
                                   Opened made, const SetAttributes& rest) {
  if (!changes_anything(rest)) return made;
  if (const auto fault = apply(who, *made.object, made.attributes, rest)) {
    const CredentialScope scope(who);
    if (scope.ok()) unmake(directory, name, made.object->path);
    return Failure{*fault};
  }
  const auto after = attributes_of(*made.object);
  if (after) made.attributes = *after;
  return made;
}

// Runs as the thread's current user, who made the object: by now another user's object may have the
// name, which only its owner may remove from a sticky directory.
void Tree::unmake(const Object& directory, std::string_view name, const UniqueFd& made) {
  const std::string terminated(name);
  struct stat named {};
  struct stat wanted {};
  if (::fstatat(directory.path.fd(), terminated.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0 ||
      ::fstatat(made.fd(), "", &wanted, AT_EMPTY_PATH) != 0)
    return;
  if (named.st_dev != wanted.st_dev || named.st_ino != wanted.st_ino) return;
  ::unlinkat(directory.path.fd(), terminated.c_str(), S_ISDIR(named.st_mode) ? AT_REMOVEDIR : 0);
}

// For the system calls that return no descriptor of the new object. Another user who may write to
// the directory may have put another object under the name meanwhile; this function does not change
// that one.
Outcome<Tree::Opened> Tree::finish_making(const Credentials& who, Object& directory,
                                          std::string_view name, FileType type,
                                          const SetAttributes& attributes) {
  Outcome<Opened> made = Failure{Status::Access};
  {
    const CredentialScope scope(who);
    if (scope.ok()) made = open_entry(directory, name);
  }
  if (!made) return made;
  if (made->attributes.type != type) return Failure{Status::NoEntry};
  const SetAttributes rest = unset_after_making(who, made->attributes, attributes);
  if (!changes_anything(rest)) return made;
  const auto found = stat(made->object->path);
  if (!found || !is_newborn(*found)) return Failure{Status::NoEntry};
  return settle(who, directory, name, *std::move(made), rest);
}

Outcome<Tree::Opened> Tree::adopt_file(const UniqueFd& file) {
  UniqueFd path(::open(ProcPath(file).text(), O_PATH | O_CLOEXEC));
  if (!path) return last_error();
  return adopt(std::move(path));
}

Outcome<Tree::Opened> Tree::create_file(const Credentials& who, Object& directory,
                                        std::string_view name, const SetAttributes& attributes) {
  const std::string terminated(name);
  Outcome<Opened> made = Failure{Status::Access};
  {
    const CredentialScope scope(who);
    if (!scope.ok()) return made;
    // O_EXCL: whatever has the name, a symlink or a FIFO, is neither followed nor opened.
    const int flags = O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    UniqueFd writer(with_room([&] {
      return ::openat(directory.path.fd(), terminated.c_str(), flags,
                      attributes.mode.value_or(0600) & 07777);
    }));
    if (!writer) return last_error();
    made = adopt_file(writer);
    if (!made) {
      unmake(directory, name, writer);
      return made;
    }
    made->object->set_writer(std::move(writer));
  }
  const SetAttributes rest = unset_after_making(who, made->attributes, attributes);
  return settle(who, directory, name, *std::move(made), rest);
}

// A new file that has all its attributes and no name; none where that cannot be made in this
// directory.
UniqueFd Tree::make_nameless(const Credentials& who, const Object& directory,
                             const SetAttributes& attributes) {
  UniqueFd writer;
  {
    const CredentialScope scope(who);
    if (!scope.ok()) return {};
    const int flags = O_TMPFILE | O_WRONLY | O_NONBLOCK | O_CLOEXEC;
    writer =
        UniqueFd(::openat(directory.path.fd(), ".", flags, attributes.mode.value_or(0600) & 07777));
  }
  if (!writer) return {};
  UniqueFd path(::open(ProcPath(writer).text(), O_PATH | O_CLOEXEC));
  struct statx found {};  // not by stat(), which takes a file without links for a removed one
  if (!path || ::statx(path.fd(), "", AT_EMPTY_PATH, STATX_BASIC_STATS, &found) != 0) return {};
  const Attributes made = attributes_of(found);
  Object file({}, std::move(path), FileType::Regular);
  if (apply(who, file, made, unset_after_making(who, made, attributes))) return {};
  return writer;
}

// The file of an exclusive create has its verifier, and all else, before its name: after a server
// that died in between, the client that asks again would be told that the file is another's (RFC
// 1813 3.3.8). nullopt where that cannot be done, for whatever reason: create_file() does it, or
// says why not.
std::optional<Outcome<Tree::Opened>> Tree::create_whole(const Credentials& who, Object& directory,
                                                        std::string_view name,
                                                        const SetAttributes& attributes) {
  const std::string terminated(name);
  const int folder = directory.path.fd();
  struct stat taken {};
  // Those who wait for a lock file to go ask often.
  if (::fstatat(folder, terminated.c_str(), &taken, AT_SYMLINK_NOFOLLOW) == 0) return std::nullopt;
  UniqueFd writer = make_nameless(who, directory, attributes);
  if (!writer) return std::nullopt;
  Outcome<Opened> made = Failure{Status::Access};
  {
    const CredentialScope scope(who);
    if (!scope.ok() || ::linkat(AT_FDCWD, ProcPath(writer).text(), folder, terminated.c_str(),
                                AT_SYMLINK_FOLLOW) != 0)
      return std::nullopt;
    // By its name: programs that watch the directory are told another one of what is done through
    // descriptors from before.
    made = open_entry(directory, name);
    struct stat linked {};
    const bool moved =
        !made || ::fstat(writer.fd(), &linked) != 0 || linked.st_ino != made->attributes.file_id;
    if (moved) made = adopt_file(writer);
    if (!made) {
      unmake(directory, name, writer);
      return made;
    }
  }
  // Where its mode refuses that, to a server that is not root, the one from before remains.
  if (!made->object->open_writer()) made->object->set_writer(std::move(writer));
  return made;
}

// create() on a name that is taken and may be.
Outcome<Tree::Opened> Tree::reopen(const Credentials& who, Object& directory, std::string_view name,
                                   const CreateHow& how) {
  Outcome<Opened> opened = Failure{Status::Access};
  {
    const CredentialScope scope(who);
    if (scope.ok()) opened = open_entry(directory, name);
  }
  if (!opened) return opened;
  if (how.mode == CreateMode::Exclusive) {
    if (made_by(acting_as(who).uid, how.verifier, opened->attributes)) return opened;
    return Failure{Status::Exists};
  }
  if (opened->attributes.type == FileType::Directory) return Failure{Status::IsDirectory};
  if (opened->attributes.type != FileType::Regular) return Failure{Status::Exists};
  if (!how.attributes.size) return opened;
  const auto prepared = prepare_sync(*opened->object);
  if (!prepared) return Failure{prepared.error()};
  Observation observation(*this, opened->object);
  if (const auto fault = apply_size(who, *opened->object, opened->attributes, *how.attributes.size))
    return Failure{*fault};
  // RFC 1813 4.8: as by SETATTR, the size is on stable storage before the answer.
  const Outcome<Change> change = finish_durably(observation, *prepared);
  if (!change) return Failure{change.error()};
  if (change->after) opened->attributes = *change->after;
  return opened;
}

Outcome<Created> Tree::create(const Credentials& who, const Handle& directory,
                              std::string_view name, const CreateHow& how) {
  const auto attributes = attributes_to_create(how);
  if (!attributes) return Failure{attributes.error()};
  return make(directory, name, *attributes, [&](Object& parent) -> Outcome<Opened> {
    while (true) {
      auto whole = how.mode == CreateMode::Exclusive ? create_whole(who, parent, name, *attributes)
                                                     : std::nullopt;
      auto made = whole ? *std::move(whole) : create_file(who, parent, name, *attributes);
      const bool synced = how.mode == CreateMode::Exclusive && durable_names_ && made;
      if (synced) {
        // The verifier has to outlive a crash, or a repeat would fail (RFC 1813 3.3.8).
        if (const auto fault = sync(*made->object)) return Failure{*fault};
      }
      if (made || made.error() != Status::Exists || how.mode == CreateMode::Guarded) return made;
      made = reopen(who, parent, name, how);
      // Removed between the two look-ups: create it after all.
      if (made || made.error() != Status::NoEntry) return made;
    }
  });
}

Outcome<Created> Tree::mkdir(const Credentials& who, const Handle& directory, std::string_view name,
                             const SetAttributes& attributes) {
  return make(directory, name, attributes, [&](Object& parent) -> Outcome<Opened> {
    const std::string terminated(name);
    {
      const CredentialScope scope(who);
      if (!scope.ok()) return Failure{Status::Access};
      const mode_t mode = attributes.mode.value_or(0700) & 07777;
      if (with_room([&] { return ::mkdirat(parent.path.fd(), terminated.c_str(), mode); }) != 0)
        return last_error();
    }
    return finish_making(who, parent, name, FileType::Directory, attributes);
  });
}

Outcome<Created> Tree::symlink(const Credentials& who, const Handle& directory,
                               std::string_view name, std::string_view target,
                               const SetAttributes& attributes) {
  if (target.empty() || target.find('\0') != target.npos) return Failure{Status::Invalid};
  return make(directory, name, attributes, [&](Object& parent) -> Outcome<Opened> {
    const std::string from(name), to(target);
    {
      const CredentialScope scope(who);
      if (!scope.ok()) return Failure{Status::Access};
      if (with_room([&] { return ::symlinkat(to.c_str(), parent.path.fd(), from.c_str()); }) != 0)
        return making_error(parent);
    }
    return finish_making(who, parent, name, FileType::Symlink, attributes);
  });
}

Outcome<Created> Tree::mknod(const Credentials& who, const Handle& directory, std::string_view name,
                             Special special, const SetAttributes& attributes) {
  const mode_t format = format_of_special(special.type);
  if (format == 0) return Failure{Status::BadType};
  return make(directory, name, attributes, [&](Object& parent) -> Outcome<Opened> {
    const std::string terminated(name);
    {
      const CredentialScope scope(who);
      if (!scope.ok()) return Failure{Status::Access};
      const mode_t mode = format | (attributes.mode.value_or(0600) & 07777);
      const bool device = format == S_IFBLK || format == S_IFCHR;
      const dev_t number = device ? ::makedev(special.device.major, special.device.minor) : 0;
      if (with_room(
              [&] { return ::mknodat(parent.path.fd(), terminated.c_str(), mode, number); }) != 0)
        return device && who.uid != 0 ? last_error() : making_error(parent);
    }
    return finish_making(who, parent, name, special.type, attributes);
  });
}

Outcome<Linked> Tree::link(const Credentials& who, const Handle& file, const Handle& directory,
                           std::string_view name) {
  if (const auto fault = fault_of_new_name(name, limits_.max_name)) return Failure{*fault};
  const auto object = resolve(file);
  if (!object) return Failure{object.error()};
  const auto parent = resolve_directory(directory);
  if (!parent) return Failure{parent.error()};
  if ((*object)->type == FileType::Directory) return Failure{Status::IsDirectory};
  if (const auto alive = attributes_of(**object); !alive) return Failure{alive.error()};
  if (const auto prepared = prepare_sync(**parent); !prepared) return Failure{prepared.error()};
  Observation observation(*this, *parent);
  if (!observation.before()) return Failure{observation.before().error()};
  {
    const CredentialScope scope(who);
    if (!scope.ok()) return Failure{Status::Access};
    // Through /proc: to link a descriptor directly needs the capability to open by handle.
    if (::linkat(AT_FDCWD, ProcPath((*object)->path).text(), (*parent)->path.fd(),
                 std::string(name).c_str(), AT_SYMLINK_FOLLOW) != 0)
      return last_error();
  }
  remember(**parent, name, file);
  if (const auto fault = sync(**parent)) return Failure{*fault};
  const auto attributes = attributes_after_change(**object);
  if (!attributes) return Failure{attributes.error()};
  return Linked{*attributes, observation.finish()};
}

}  // namespace stag::vfs::posix
