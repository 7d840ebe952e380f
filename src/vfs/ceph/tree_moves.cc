// Entries that are removed or moved: remove, rmdir, rename.
#include "vfs/ceph/tree.h"
#include "vfs/errors.h"
#include "vfs/name.h"

namespace stag::vfs::ceph {
namespace {

// RFC 1813 3.3.14: a target of the other kind is Exists. That the parents are directories is known
// by now.
Status rename_status(int error) {
  if (error == ENOTDIR || error == EISDIR) return Status::Exists;
  if (error == EEXIST) return Status::NotEmpty;
  return status_of(error);
}

bool is_directory(const Attributes& object) {
  return object.type == FileType::Directory;
}

}  // namespace

// The answer to a rename tells nothing of the directory that lost the entry, and the library goes
// on with what it knew. To ask for a sum of all that lies below makes it ask for the rest, too.
void Tree::refresh(const Object& directory) const {
  static_cast<void>(read_xattr(directory, "ceph.dir.rctime", mount_->root()));
}

// A file that is open keeps its data after its last name is gone.
void Tree::close_if_gone(const Object& object) {
  if (object.attributes.type != FileType::Regular) return;
  const auto after = stat(object.inode.get());
  if (after && after->stx_nlink != 0) return;
  readers_->forget(object.handle);
  writers_->forget(object.handle);
}

template <class Remove>
Outcome<Change> Tree::unlink(const Credentials& who, const Handle& directory, std::string_view name,
                             Remove remove) {
  if (const auto fault = fault_of_old_name(name, limits().max_name)) return Failure{*fault};
  const auto parent = resolve_directory(directory);
  if (!parent) return Failure{parent.error()};
  // A caller who may not search the directory learns nothing of what is in it.
  const auto removed = find(Permissions(*mount_, who), *parent, name);
  if (!removed && removed.error() == Status::Delay) return Failure{Status::Delay};
  if (const auto fault = remove(*parent, removed)) return Failure{*fault};
  if (removed) close_if_gone(*removed);
  if (const auto fault = sync_change(*parent)) return Failure{*fault};
  return change_of(*parent);
}

Outcome<Change> Tree::remove(const Credentials& who, const Handle& directory,
                             std::string_view name) {
  return unlink(who, directory, name,
                [&](const Object& parent, const Outcome<Object>& child) -> std::optional<Status> {
                  if (child && child->attributes.type == FileType::Directory)
                    return Status::IsDirectory;
                  const Permissions permissions(*mount_, who);
                  const auto turn = names_.together();
                  if (!turn) return Status::Delay;
                  const int failed =
                      mount_->call().unlink(mount_->get(), parent.inode.get(),
                                            std::string(name).c_str(), permissions.get());
                  return failed < 0 ? std::optional(status_of(-failed)) : std::nullopt;
                });
}

Outcome<Change> Tree::rmdir(const Credentials& who, const Handle& directory,
                            std::string_view name) {
  return unlink(who, directory, name,
                [&](const Object& parent, const Outcome<Object>& child) -> std::optional<Status> {
                  if (child && child->attributes.type != FileType::Directory)
                    return Status::NotDirectory;
                  const Permissions permissions(*mount_, who);
                  const auto turn = names_.together();
                  if (!turn) return Status::Delay;
                  const int failed =
                      mount_->call().rmdir(mount_->get(), parent.inode.get(),
                                           std::string(name).c_str(), permissions.get());
                  return failed < 0 ? std::optional(status_of(-failed)) : std::nullopt;
                });
}

Outcome<Tree::Move> Tree::move(const Credentials& who, const Object& source, std::string_view from,
                               const Object& target, std::string_view to) {
  const Permissions permissions(*mount_, who);
  const auto turn = names_.alone();
  if (!turn) return Failure{Status::Delay};
  const auto moved = find_in_turn(permissions, source, from);
  if (!moved) return Failure{moved.error()};
  auto replaced = find_in_turn(permissions, target, to);
  Move made;
  if (replaced) {
    if (is_directory(moved->attributes) != is_directory(replaced->attributes))
      return Failure{Status::Exists};
    made.nothing = replaced->handle == moved->handle;
    made.replaced = *std::move(replaced);
  }
  // The library would forget one of the names.
  if (made.nothing) return made;
  const int failed =
      mount_->call().rename(mount_->get(), source.inode.get(), std::string(from).c_str(),
                            target.inode.get(), std::string(to).c_str(), permissions.get());
  if (failed < 0) return Failure{rename_status(-failed)};
  return made;
}

Outcome<Renamed> Tree::rename(const Credentials& who, const Handle& from_directory,
                              std::string_view from, const Handle& to_directory,
                              std::string_view to) {
  if (const auto fault = fault_of_old_name(from, limits().max_name)) return Failure{*fault};
  if (const auto fault = fault_of_old_name(to, limits().max_name)) return Failure{*fault};
  const auto source = resolve_directory(from_directory);
  if (!source) return Failure{source.error()};
  const auto target = resolve_directory(to_directory);
  if (!target) return Failure{target.error()};
  const auto moved = move(who, *source, from, *target, to);
  if (!moved) return Failure{moved.error()};
  if (moved->nothing) return Renamed{change_of(*source), change_of(*target)};
  if (moved->replaced) close_if_gone(*moved->replaced);
  if (const auto fault = sync_change(*target)) return Failure{*fault};
  const bool elsewhere = !(from_directory == to_directory);
  if (elsewhere) {
    if (const auto fault = sync_change(*source)) return Failure{*fault};
    refresh(*source);
  }
  Renamed renamed;
  renamed.from = change_of(*source);
  renamed.to = elsewhere ? change_of(*target) : renamed.from;
  return renamed;
}

}  // namespace stag::vfs::ceph
