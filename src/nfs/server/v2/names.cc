// Making and unmaking names: CREATE, MKDIR, SYMLINK, LINK, REMOVE, RMDIR and RENAME (RFC 1094
// 2.2.10 to 2.2.16).
#include "nfs/server/v2/procedures.h"

namespace stag::nfs::nfs2 {

namespace {

v2::diropres answer(const Request& request, const ExportObject& directory,
                    const vfs::Outcome<vfs::Created>& created) {
  if (!created) return failed<v2::diropres>(created.error());
  return request.found(directory, created->node);
}

// A device, pipe or socket; the device number stands where a size would.
Task<vfs::Outcome<vfs::Created>> make_special(const ExportObject& directory, std::string_view name,
                                              const NewObject& object, v2::sattr attributes) {
  attributes.size = 0xffffffff;
  const auto changes = from_sattr(attributes);
  if (!changes) co_return Failure{changes.error()};
  co_return co_await directory.store().mknod(directory.caller(), directory.handle, name,
                                             {object.type, object.device}, *changes);
}

// RFC 1094 has no exclusive create: a file that is there is opened.
Task<vfs::Outcome<vfs::Created>> make_file(const Request& request, const ExportObject& directory,
                                           std::string_view name, const v2::sattr& attributes) {
  const auto changes = from_sattr(attributes);
  if (!changes) co_return Failure{changes.error()};
  vfs::CreateHow how;
  how.mode = vfs::CreateMode::Unchecked;
  how.attributes = *changes;
  if (request.guarded())
    if (const auto refused = co_await request.refused_create(directory, name, how))
      co_return Failure{*refused};
  co_return co_await directory.store().create(directory.caller(), directory.handle, name, how);
}

template <class T>
v2::nfsstat status_of(const vfs::Outcome<T>& outcome) {
  return outcome ? v2::NFS_OK : to_nfsstat(outcome.error());
}

}  // namespace

Task<v2::diropres> create(Request request, v2::createargs args) {
  const auto directory = co_await request.resolve(args.where.dir);
  if (!directory) co_return failed<v2::diropres>(directory.error());
  if (directory->read_only()) co_return failed<v2::diropres>(v2::NFSERR_ROFS);
  const auto object = to_new_object(args.attributes);
  if (!object) co_return failed<v2::diropres>(object.error());
  vfs::Outcome<vfs::Created> created = Failure{vfs::Status::Invalid};
  if (object->type == vfs::FileType::Regular)
    created = co_await make_file(request, *directory, args.where.name, args.attributes);
  else
    created = co_await make_special(*directory, args.where.name, *object, args.attributes);
  co_return answer(request, *directory, created);
}

Task<v2::diropres> mkdir(Request request, v2::createargs args) {
  const auto directory = co_await request.resolve(args.where.dir);
  if (!directory) co_return failed<v2::diropres>(directory.error());
  if (directory->read_only()) co_return failed<v2::diropres>(v2::NFSERR_ROFS);
  // A directory has no size to set, whatever stands there.
  args.attributes.size = 0xffffffff;
  const auto changes = from_sattr(args.attributes);
  if (!changes) co_return failed<v2::diropres>(changes.error());
  const auto created = co_await directory->store().mkdir(directory->caller(), directory->handle,
                                                         args.where.name, *changes);
  co_return answer(request, *directory, created);
}

Task<v2::nfsstat> symlink(Request request, v2::symlinkargs args) {
  const auto directory = co_await request.resolve(args.from.dir);
  if (!directory) co_return to_nfsstat(directory.error());
  if (directory->read_only()) co_return v2::NFSERR_ROFS;
  // A store that passes the text to a system call would lose the part behind a NUL.
  if (args.to.find('\0') != std::string::npos) co_return to_nfsstat(vfs::Status::Invalid);
  // 2.2.14: "On UNIX servers the attributes are never used".
  const auto created = co_await directory->store().symlink(
      directory->caller(), directory->handle, args.from.name, args.to, vfs::SetAttributes{});
  co_return status_of(created);
}

Task<v2::nfsstat> link(Request request, v2::linkargs args) {
  const auto file = co_await request.resolve(args.from);
  if (!file) co_return to_nfsstat(file.error());
  const auto directory = co_await request.resolve(args.to.dir);
  if (!directory) co_return to_nfsstat(directory.error());
  const auto refused = refused_together(*file, *directory);
  if (refused) co_return to_nfsstat(*refused);
  const Intent intent{.touch = state::Touch::Attributes, .directory = &*directory};
  const auto permitted = co_await request.permit(*file, intent);
  if (!permitted) co_return to_nfsstat(permitted.error());
  const auto linked =
      co_await file->store().link(file->caller(), file->handle, directory->handle, args.to.name);
  co_return status_of(linked);
}

Task<v2::nfsstat> remove(Request request, v2::diropargs args) {
  const auto directory = co_await request.resolve(args.dir);
  if (!directory) co_return to_nfsstat(directory.error());
  if (directory->read_only()) co_return v2::NFSERR_ROFS;
  if (request.guarded())
    if (const auto refused = co_await request.refused_remove(*directory, args.name))
      co_return to_nfsstat(*refused);
  const auto removed =
      co_await directory->store().remove(directory->caller(), directory->handle, args.name);
  co_return status_of(removed);
}

Task<v2::nfsstat> rmdir(Request request, v2::diropargs args) {
  const auto directory = co_await request.resolve(args.dir);
  if (!directory) co_return to_nfsstat(directory.error());
  if (directory->read_only()) co_return v2::NFSERR_ROFS;
  const auto removed =
      co_await directory->store().rmdir(directory->caller(), directory->handle, args.name);
  co_return status_of(removed);
}

Task<v2::nfsstat> rename(Request request, v2::renameargs args) {
  const auto from = co_await request.resolve(args.from.dir);
  if (!from) co_return to_nfsstat(from.error());
  const auto to = co_await request.resolve(args.to.dir);
  if (!to) co_return to_nfsstat(to.error());
  const auto refused = refused_together(*from, *to);
  if (refused) co_return to_nfsstat(*refused);
  if (request.guarded())
    if (const auto kept = co_await request.refused_rename(*from, args.from.name, *to, args.to.name))
      co_return to_nfsstat(*kept);
  const auto renamed = co_await from->store().rename(from->caller(), from->handle, args.from.name,
                                                     to->handle, args.to.name);
  co_return status_of(renamed);
}

}  // namespace stag::nfs::nfs2
