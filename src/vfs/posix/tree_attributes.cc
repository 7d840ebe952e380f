// Attributes and access of single objects.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "vfs/change_rules.h"
#include "vfs/posix/credentials.h"
#include "vfs/posix/errors.h"
#include "vfs/posix/tree.h"

namespace stag::vfs::posix {
namespace {

// As the thread's current user (AT_EACCESS: the file-system user, not the real one).
bool permitted(const Object& object, int wanted) {
  return ::syscall(SYS_faccessat2, object.path.fd(), "", wanted, AT_EACCESS | AT_EMPTY_PATH) == 0;
}

timespec timespec_of(const SetTime& change) {
  switch (change.how) {
    case SetTime::How::Keep:
      return {0, UTIME_OMIT};
    case SetTime::How::Now:
      return {0, UTIME_NOW};
    case SetTime::How::To:
      return {static_cast<time_t>(change.time.seconds), static_cast<long>(change.time.nanoseconds)};
  }
  return {0, UTIME_OMIT};
}

}  // namespace

Outcome<Attributes> Tree::attributes(const Handle& object) {
  const auto resolved = resolve(object);
  if (!resolved) return Failure{resolved.error()};
  auto attributes = attributes_of(**resolved);
  if (!attributes) cache_->drop(object);
  return attributes;
}

ObjectRef Tree::at_hand(const Handle& handle) {
  if (!at_once_) return nullptr;
  return handle == root_->handle ? root_ : cache_->find(handle);
}

std::optional<Outcome<Attributes>> Tree::attributes_at_once(const Handle& object) {
  const ObjectRef cached = at_hand(object);
  if (cached == nullptr) return std::nullopt;
  return attributes_of(*cached);
}

Outcome<Access> Tree::access_of(const Credentials& who, const Object& object,
                                std::uint32_t asked) const {
  const auto attributes = attributes_of(object);
  if (!attributes) return Failure{attributes.error()};
  const bool directory = object.type == FileType::Directory;
  const CredentialScope scope(who);
  if (!scope.ok()) return Access{0, *attributes};
  std::uint32_t granted = 0;
  if ((asked & access::kRead) != 0 && permitted(object, R_OK)) granted |= access::kRead;
  const std::uint32_t executing = directory ? access::kLookup : access::kExecute;
  if ((asked & executing) != 0 && permitted(object, X_OK)) granted |= executing;
  const std::uint32_t changing =
      access::kModify | access::kExtend | (directory ? access::kDelete : 0);
  if ((asked & changing) != 0 && permitted(object, directory ? W_OK | X_OK : W_OK))
    granted |= changing;
  if ((asked & (access::kRead | executing | changing)) != 0) note_checked(who, object, *attributes);
  return Access{granted & asked, *attributes};
}

// An owner's permissions are in the mode alone.
void Tree::note_checked(const Credentials& who, const Object& object,
                        const Attributes& attributes) {
  if (acting_as(who).uid != attributes.uid) object.checked.store(true, std::memory_order_relaxed);
}

bool Tree::checks_at_once(const Credentials& who, const Object& object,
                          const Attributes& attributes) const {
  return in_memory_ || object.checked.load(std::memory_order_relaxed) ||
         acting_as(who).uid == attributes.uid;
}

Outcome<Access> Tree::access(const Credentials& who, const Handle& object, std::uint32_t asked) {
  const auto resolved = resolve(object);
  if (!resolved) return Failure{resolved.error()};
  return access_of(who, **resolved, asked);
}

std::optional<Outcome<Access>> Tree::access_at_once(const Credentials& who, const Handle& object,
                                                    std::uint32_t asked) {
  const ObjectRef cached = at_hand(object);
  if (cached == nullptr || !may_act_on_loop(who)) return std::nullopt;
  if (!cached->checked.load(std::memory_order_relaxed)) {
    const auto attributes = attributes_of(*cached);
    if (!attributes || !checks_at_once(who, *cached, *attributes)) return std::nullopt;
  }
  return access_of(who, *cached, asked);
}

bool Tree::asks_kernel(const Credentials& who, const Attributes& attributes) {
  if (!can_switch_users()) return false;  // open(2) checks the server's user.
  return who.uid != 0 && who.uid != attributes.uid;
}

// Whether the caller may move data of the file: more than open(2) would let it (RFC 1813 4.4).
std::optional<Status> Tree::data_fault(const Credentials& who, const Object& file,
                                       const Attributes& attributes, bool writing) const {
  if (!asks_kernel(who, attributes)) return std::nullopt;
  const CredentialScope scope(who);
  if (!scope.ok()) return Status::Access;
  const bool may = writing ? permitted(file, W_OK) : permitted(file, R_OK) || permitted(file, X_OK);
  note_checked(who, file, attributes);
  if (may) return std::nullopt;
  return Status::Access;
}

std::optional<Status> Tree::apply_size(const Credentials& who, Object& object,
                                       const Attributes& before, std::uint64_t size) {
  if (const auto fault = data_fault(who, object, before, true)) return fault;
  const auto writer = object.open_writer();
  if (!writer) return writer.error();
  const CredentialScope scope(who);
  if (!scope.ok()) return Status::Access;
  if (::ftruncate((*writer)->fd(), static_cast<off_t>(size)) != 0) return status_of(errno);
  return std::nullopt;
}

// One time set to now and the other left alone takes permission to write, as setting both does;
// utimensat(2) alone would want the owner for that.
std::optional<Status> Tree::apply_times(const Credentials& who, Object& object,
                                        const Attributes& before, const SetAttributes& changes) {
  const auto is = [&](SetTime::How how) {
    return changes.accessed.how == how || changes.modified.how == how;
  };
  if (!is(SetTime::How::Now) && !is(SetTime::How::To)) return std::nullopt;
  const timespec times[2] = {timespec_of(changes.accessed), timespec_of(changes.modified)};
  std::optional<CredentialScope> scope(who);
  if (!scope->ok()) return Status::Access;
  const bool as_server = can_switch_users() && who.uid != before.uid && !is(SetTime::How::To);
  if (as_server) {
    if (!permitted(object, W_OK)) return Status::Access;
    scope.reset();
  }
  if (::utimensat(object.path.fd(), "", times, AT_EMPTY_PATH) != 0) return status_of(errno);
  return std::nullopt;
}

// The size first, because it can fail for lack of space; then the owner, whose change clears set-id
// bits, and then the mode.
std::optional<Status> Tree::apply(const Credentials& who, Object& object, const Attributes& before,
                                  const SetAttributes& changes) {
  if (changes.size) {
    if (const auto fault = apply_size(who, object, before, *changes.size)) return fault;
  }
  {
    const CredentialScope scope(who);
    if (!scope.ok()) return Status::Access;
    if (changes.uid || changes.gid) {
      const int flags = AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW;
      if (::fchownat(object.path.fd(), "", changes.uid.value_or(kNoId), changes.gid.value_or(kNoId),
                     flags) != 0)
        return status_of(errno);
    }
    if (changes.mode && ::chmod(ProcPath(object.path).text(), *changes.mode & 07777) != 0)
      return status_of(errno);
  }
  return apply_times(who, object, before, changes);
}

Outcome<Change> Tree::set_attributes(const Credentials& who, const Handle& object,
                                     const SetAttributes& changes, std::optional<Time> guard) {
  if (const auto fault = fault_of_values(changes)) return Failure{*fault};
  const auto resolved = resolve(object);
  if (!resolved) return Failure{resolved.error()};
  const bool changes_it = changes_anything(changes);
  const auto prepared = changes_it ? prepare_sync(**resolved) : SharedDescriptor();
  if (!prepared) return Failure{prepared.error()};
  // From the comparison with the guard to the change that it guards.
  auto alone = (*resolved)->set_alone();
  Observation observation(*this, *resolved);
  const auto& before = observation.before();
  if (!before) return Failure{before.error()};
  if (guard && *guard != before->changed) return Failure{Status::NotSync};
  if (const auto fault = fault_of_change(*before, acting_as(who), changes)) return Failure{*fault};
  if (const auto fault = apply(who, **resolved, *before, changes)) return Failure{*fault};
  alone.unlock();
  if (changes.mode) (*resolved)->reconsider_writer();
  if (const auto fault = sync(**resolved, *prepared)) return Failure{*fault};
  return observation.finish(changes_it);
}

Outcome<Link> Tree::readlink(const Handle& symlink) {
  const auto resolved = resolve(symlink);
  if (!resolved) return Failure{resolved.error()};
  const auto attributes = attributes_of(**resolved);
  if (!attributes) return Failure{attributes.error()};
  if ((*resolved)->type != FileType::Symlink) return Failure{Status::NotSymlink};
  Link link{std::string(4096, '\0'), *attributes};
  const ssize_t length =
      ::readlinkat((*resolved)->path.fd(), "", link.target.data(), link.target.size());
  if (length < 0) return last_error();
  link.target.resize(static_cast<std::size_t>(length));
  return link;
}

}  // namespace stag::vfs::posix
