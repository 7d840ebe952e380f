// Entries that are found and made: lookup, create, mkdir, symlink, mknod, link.
#include <fcntl.h>
#include <sys/sysmacros.h>

#include "vfs/ceph/tree.h"
#include "vfs/change_rules.h"
#include "vfs/errors.h"
#include "vfs/exclusive.h"
#include "vfs/file_format.h"
#include "vfs/name.h"

namespace stag::vfs::ceph {
namespace {

constexpr std::size_t kMaxTarget = 4095;
// Of a file whose name others make and remove meanwhile.
constexpr int kMaxTries = 8;
constexpr std::uint32_t kBitsOfIds = 06000;
constexpr unsigned kWanted = CEPH_STATX_ALL_STATS;

// What the call that made the object could not set.
SetAttributes unset_after(const Credentials& who, const Attributes& made,
                          const SetAttributes& wanted) {
  SetAttributes rest = wanted;
  rest.mode.reset();
  if (who.uid != 0) {
    rest.uid.reset();
    rest.gid.reset();
  }
  const std::uint32_t ids = wanted.mode.value_or(0) & kBitsOfIds;
  const bool lost = (ids & ~made.mode) != 0 || (ids != 0 && (rest.uid || rest.gid));
  if (lost && made.type != FileType::Symlink) rest.mode = made.mode | ids;
  return rest;
}

// A name in the form that the library takes.
mode_t mode_of(const SetAttributes& attributes, mode_t otherwise) {
  return attributes.mode.value_or(otherwise) & 07777;
}

}  // namespace

Outcome<Tree::Object> Tree::find(const Permissions& who, const Object& directory,
                                 std::string_view name) const {
  const auto turn = names_.together();
  if (!turn) return Failure{Status::Delay};
  return find_in_turn(who, directory, name);
}

Outcome<Tree::Object> Tree::find_in_turn(const Permissions& who, const Object& directory,
                                         std::string_view name) const {
  Inode* inode = nullptr;
  Stat stat{};
  const int failed =
      mount_->call().lookup(mount_->get(), directory.inode.get(), std::string(name).c_str(), &inode,
                            &stat, kWanted, 0, who.get());
  if (failed < 0) return Failure{status_of(-failed)};
  return adopt(InodeRef(*mount_, inode), stat);
}

Outcome<Found> Tree::lookup(const Credentials& who, const Handle& directory,
                            std::string_view name) {
  if (const auto fault = fault_of_name(name, limits().max_name)) return Failure{*fault};
  const auto parent = resolve_directory(directory);
  if (!parent) return Failure{parent.error()};
  const bool above = name == ".." && directory == root_handle_;
  const auto found = find(Permissions(*mount_, who), *parent, above ? "." : name);
  if (!found) return Failure{found.error() == Status::Stale ? Status::NoEntry : found.error()};
  return Found{found->node(), parent->attributes};
}

// The frame of every creation. `make` yields the new object.
template <class Make>
Outcome<Created> Tree::make(const Handle& directory, std::string_view name,
                            const SetAttributes& attributes, Make make) {
  if (const auto fault = fault_of_new_name(name, limits().max_name)) return Failure{*fault};
  if (const auto fault = fault_of_values(attributes)) return Failure{*fault};
  const auto parent = resolve_directory(directory);
  if (!parent) return Failure{parent.error()};
  const Outcome<Object> made = make(*parent);
  if (!made) return Failure{made.error()};
  if (const auto fault = sync_change(*parent)) return Failure{*fault};
  return Created{made->node(), change_of(*parent)};
}

// `call` makes the object as the library does: an inode, and what it is like.
template <class Call>
Outcome<Tree::Object> Tree::made_by_call(const Credentials& who, const SetAttributes& attributes,
                                         Call call) {
  Inode* inode = nullptr;
  Stat stat{};
  {
    const Permissions permissions(*mount_, who);
    const auto turn = names_.together();
    if (!turn) return Failure{Status::Delay};
    const int failed = call(&inode, &stat, permissions.get());
    if (failed < 0) return Failure{status_of(-failed)};
  }
  auto made = adopt(InodeRef(*mount_, inode), stat);
  if (!made) return made;
  const SetAttributes rest = unset_after(who, made->attributes, attributes);
  if (!changes_anything(rest)) return made;
  // Of what one has just made one may set everything.
  static const Credentials kRoot{0, 0, {}};
  if (const auto fault = apply(kRoot, *made, rest)) return Failure{*fault};
  if (const auto fault = sync_change(*made)) return Failure{*fault};
  return object_of(std::move(made->inode));
}

Outcome<Tree::Object> Tree::make_file(const Credentials& who, const Object& directory,
                                      std::string_view name, const SetAttributes& attributes) {
  return made_by_call(who, attributes, [&](Inode** inode, Stat* stat, const UserPerm* as) {
    return mount_->call().mknod(mount_->get(), directory.inode.get(), std::string(name).c_str(),
                                S_IFREG | mode_of(attributes, 0600), 0, inode, stat, kWanted, 0,
                                as);
  });
}

// create() on a name that is taken and may be.
Outcome<Tree::Object> Tree::reopen(const Credentials& who, const Object& directory,
                                   std::string_view name, const CreateHow& how) {
  auto opened = find(Permissions(*mount_, who), directory, name);
  if (!opened) return opened;
  const Attributes& there = opened->attributes;
  if (how.mode == CreateMode::Exclusive) {
    if (made_by(who.uid, how.verifier, there)) return opened;
    return Failure{Status::Exists};
  }
  if (there.type == FileType::Directory) return Failure{Status::IsDirectory};
  if (there.type != FileType::Regular) return Failure{Status::Exists};
  if (!how.attributes.size) return opened;
  SetAttributes size;
  size.size = how.attributes.size;
  if (const auto fault = apply(who, *opened, size)) return Failure{*fault};
  if (const auto fault = sync_change(*opened)) return Failure{*fault};
  return object_of(std::move(opened->inode));
}

Outcome<Created> Tree::create(const Credentials& who, const Handle& directory,
                              std::string_view name, const CreateHow& how) {
  const auto attributes = attributes_to_create(how);
  if (!attributes) return Failure{attributes.error()};
  return make(directory, name, *attributes, [&](const Object& parent) -> Outcome<Object> {
    for (int tries = 0; tries < kMaxTries; ++tries) {
      auto made = make_file(who, parent, name, *attributes);
      if (made || made.error() != Status::Exists || how.mode == CreateMode::Guarded) return made;
      made = reopen(who, parent, name, how);
      // Removed between the two look-ups: create it after all.
      const bool gone = !made && (made.error() == Status::NoEntry || made.error() == Status::Stale);
      if (!gone) return made;
    }
    return Failure{Status::Delay};
  });
}

Outcome<Created> Tree::mkdir(const Credentials& who, const Handle& directory, std::string_view name,
                             const SetAttributes& attributes) {
  return make(directory, name, attributes, [&](const Object& parent) {
    return made_by_call(who, attributes, [&](Inode** inode, Stat* stat, const UserPerm* as) {
      return mount_->call().mkdir(mount_->get(), parent.inode.get(), std::string(name).c_str(),
                                  mode_of(attributes, 0700), inode, stat, kWanted, 0, as);
    });
  });
}

Outcome<Created> Tree::symlink(const Credentials& who, const Handle& directory,
                               std::string_view name, std::string_view target,
                               const SetAttributes& attributes) {
  if (target.empty() || target.find('\0') != target.npos) return Failure{Status::Invalid};
  if (target.size() > kMaxTarget) return Failure{Status::NameTooLong};
  return make(directory, name, attributes, [&](const Object& parent) {
    return made_by_call(who, attributes, [&](Inode** inode, Stat* stat, const UserPerm* as) {
      return mount_->call().symlink(mount_->get(), parent.inode.get(), std::string(name).c_str(),
                                    std::string(target).c_str(), inode, stat, kWanted, 0, as);
    });
  });
}

// That only root makes devices the kernel says elsewhere; libcephfs does not.
Outcome<Created> Tree::mknod(const Credentials& who, const Handle& directory, std::string_view name,
                             Special special, const SetAttributes& attributes) {
  const mode_t format = format_of_special(special.type);
  if (format == 0) return Failure{Status::BadType};
  const bool device = format == S_IFBLK || format == S_IFCHR;
  if (device && who.uid != 0) return Failure{Status::Perm};
  const dev_t number = device ? ::makedev(special.device.major, special.device.minor) : 0;
  return make(directory, name, attributes, [&](const Object& parent) {
    return made_by_call(who, attributes, [&](Inode** inode, Stat* stat, const UserPerm* as) {
      return mount_->call().mknod(mount_->get(), parent.inode.get(), std::string(name).c_str(),
                                  format | mode_of(attributes, 0600), number, inode, stat, kWanted,
                                  0, as);
    });
  });
}

Outcome<Linked> Tree::link(const Credentials& who, const Handle& file, const Handle& directory,
                           std::string_view name) {
  if (const auto fault = fault_of_new_name(name, limits().max_name)) return Failure{*fault};
  const auto object = resolve(file);
  if (!object) return Failure{object.error()};
  const auto parent = resolve_directory(directory);
  if (!parent) return Failure{parent.error()};
  if (object->attributes.type == FileType::Directory) return Failure{Status::IsDirectory};
  {
    const Permissions permissions(*mount_, who);
    const auto turn = names_.together();
    if (!turn) return Failure{Status::Delay};
    const int failed = mount_->call().link(mount_->get(), object->inode.get(), parent->inode.get(),
                                           std::string(name).c_str(), permissions.get());
    if (failed < 0) return Failure{status_of(-failed)};
  }
  if (const auto fault = sync_change(*parent)) return Failure{*fault};
  const auto after = stat(object->inode.get());
  if (!after) return Failure{after.error()};
  return Linked{attributes_of(*after), change_of(*parent)};
}

}  // namespace stag::vfs::ceph
