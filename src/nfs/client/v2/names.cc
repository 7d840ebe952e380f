// Names and access control lists in version 2.
#include "nfs/client/nfsacl/values.h"
#include "nfs/client/v2/run.h"

namespace stag::nfs::client::nfs2 {

namespace {

// A new object has the server's time anyhow.
Outcome<v2::createargs> to_createargs(OperationContext context, const Handle& directory,
                                      std::string_view name, const SetAttributes& attributes) {
  const Outcome<v2::diropargs> entry = to_diropargs(context, directory, name);
  if (!entry) return Failure{entry.error()};
  const Outcome<v2::sattr> initial = to_sattr(context, attributes);
  if (!initial) return Failure{initial.error()};
  return v2::createargs{*entry, *initial};
}

Made to_made(const v2::dirok& object) {
  return {to_handle(object.file), to_attributes(object.attributes)};
}

// RFC 1094 has no MKNOD: the type stands in the mode bits, the device number where the size would.
void mark_special(const Special& special, v2::sattr& attributes) {
  const bool device =
      special.type == FileType::BlockDevice || special.type == FileType::CharacterDevice;
  if (attributes.mode == kKeep) attributes.mode = 0;
  attributes.size = device ? to_rdev(special.device) : 0;
  if (special.type == FileType::BlockDevice) attributes.mode |= 0060000;
  if (special.type == FileType::CharacterDevice) attributes.mode |= 0020000;
  if (special.type == FileType::Fifo) attributes.mode |= 0010000;
  if (special.type == FileType::Socket) attributes.mode |= 0140000;
}

}  // namespace

// Exists when the name is taken.
Task<Outcome<Ok>> Nfs2::must_be_free(OperationContext context, const v2::diropargs& entry) {
  const auto found = co_await run<v2::NFSPROC_LOOKUP>(context, entry);
  if (found) co_return Failure{Error::of_status(context, Status::Exists)};
  if (found.error().is(Status::NoEntry)) co_return Ok{};
  co_return Failure{found.error()};
}

Task<Outcome<Made>> Nfs2::create(OperationContext context, Handle directory, std::string_view name,
                                 SetAttributes attributes, CreateMode mode) {
  const bool exclusive = is_exclusive(mode);
  Outcome<v2::createargs> wanted =
      to_createargs(context, directory, name, exclusive ? SetAttributes{} : attributes);
  if (!wanted) co_return Failure{wanted.error()};
  // FileSystem sets the attributes of a file that it made exclusively.
  if (exclusive) wanted->attributes.mode = 0600;
  if (mode != CreateMode::Unchecked) {
    const Outcome<Ok> free = co_await must_be_free(context, wanted->where);
    if (!free) co_return Failure{free.error()};
  }
  const auto res = co_await run<v2::NFSPROC_CREATE>(context, *wanted);
  if (!res) co_return Failure{res.error()};
  co_return to_made(res->diropok());
}

Task<Outcome<Made>> Nfs2::mkdir(OperationContext context, Handle directory, std::string_view name,
                                SetAttributes attributes) {
  const Outcome<v2::createargs> wanted = to_createargs(context, directory, name, attributes);
  if (!wanted) co_return Failure{wanted.error()};
  const auto res = co_await run<v2::NFSPROC_MKDIR>(context, *wanted);
  if (!res) co_return Failure{res.error()};
  co_return to_made(res->diropok());
}

Task<Outcome<Made>> Nfs2::symlink(OperationContext context, Handle directory, std::string_view name,
                                  std::string target, SetAttributes attributes) {
  const Outcome<v2::createargs> wanted = to_createargs(context, directory, name, attributes);
  if (!wanted) co_return Failure{wanted.error()};
  if (target.size() > v2::MAXPATHLEN)
    co_return Failure{Error::of_status(context, Status::NameTooLong)};
  const v2::symlinkargs link{wanted->where, std::move(target), wanted->attributes};
  const auto res = co_await run<v2::NFSPROC_SYMLINK>(context, link);
  if (!res) co_return Failure{res.error()};
  co_return Made{};
}

Task<Outcome<Made>> Nfs2::mknod(OperationContext context, Handle directory, std::string_view name,
                                Special special, SetAttributes attributes) {
  Outcome<v2::createargs> wanted = to_createargs(context, directory, name, attributes);
  if (!wanted) co_return Failure{wanted.error()};
  mark_special(special, wanted->attributes);
  const auto res = co_await run<v2::NFSPROC_CREATE>(context, *wanted);
  if (!res) co_return Failure{res.error()};
  co_return to_made(res->diropok());
}

Task<Outcome<Ok>> Nfs2::remove(OperationContext context, Handle directory, std::string_view name) {
  const Outcome<v2::diropargs> entry = to_diropargs(context, directory, name);
  if (!entry) co_return Failure{entry.error()};
  const auto res = co_await run<v2::NFSPROC_REMOVE>(context, *entry);
  if (!res) co_return Failure{res.error()};
  co_return Ok{};
}

Task<Outcome<Ok>> Nfs2::rmdir(OperationContext context, Handle directory, std::string_view name) {
  const Outcome<v2::diropargs> entry = to_diropargs(context, directory, name);
  if (!entry) co_return Failure{entry.error()};
  const auto res = co_await run<v2::NFSPROC_RMDIR>(context, *entry);
  if (!res) co_return Failure{res.error()};
  co_return Ok{};
}

Task<Outcome<Ok>> Nfs2::rename(OperationContext context, Handle from_directory,
                               std::string_view from, Handle to_directory, std::string_view to) {
  const Outcome<v2::diropargs> source = to_diropargs(context, from_directory, from);
  if (!source) co_return Failure{source.error()};
  const Outcome<v2::diropargs> target = to_diropargs(context, to_directory, to);
  if (!target) co_return Failure{target.error()};
  const v2::renameargs wanted{*source, *target};
  const auto res = co_await run<v2::NFSPROC_RENAME>(context, wanted);
  if (!res) co_return Failure{res.error()};
  co_return Ok{};
}

Task<Outcome<Ok>> Nfs2::link(OperationContext context, Handle file, Handle directory,
                             std::string_view name) {
  const Outcome<v2::fhandle> target = to_fhandle(context, file);
  if (!target) co_return Failure{target.error()};
  const Outcome<v2::diropargs> entry = to_diropargs(context, directory, name);
  if (!entry) co_return Failure{entry.error()};
  const v2::linkargs wanted{*target, *entry};
  const auto res = co_await run<v2::NFSPROC_LINK>(context, wanted);
  if (!res) co_return Failure{res.error()};
  co_return Ok{};
}

Task<Outcome<Acls>> Nfs2::acls(OperationContext context, Handle object, std::uint32_t reply_max) {
  const Outcome<v2::fhandle> handle = to_fhandle(context, object);
  if (!handle) co_return Failure{handle.error()};
  const nfsacl::GETACL2args args{*handle, nfsacl::NFS_ACL_MASK};
  const auto resok =
      co_await acl_client_.call<nfsacl::ACLPROC2_GETACL>(args, context, {}, reply_max);
  if (!resok) co_return Failure{resok.error()};
  co_return from_secattr(context, resok->acls);
}

Task<Outcome<Ok>> Nfs2::set_acls(OperationContext context, Handle object, Acls acls,
                                 bool with_defaults) {
  const Outcome<v2::fhandle> handle = to_fhandle(context, object);
  if (!handle) co_return Failure{handle.error()};
  const nfsacl::SETACL2args args{*handle, to_secattr(acls, with_defaults)};
  const auto resok = co_await acl_client_.call<nfsacl::ACLPROC2_SETACL>(args, context);
  if (!resok) co_return Failure{resok.error()};
  co_return Ok{};
}

}  // namespace stag::nfs::client::nfs2
