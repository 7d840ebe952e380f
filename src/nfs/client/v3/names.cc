// Names and access control lists in version 3.
#include <random>

#include "nfs/client/nfsacl/values.h"
#include "nfs/client/v3/nfs3.h"
#include "nfs/client/v3/values.h"

namespace stag::nfs::client::nfs3 {
namespace {

v3::diropargs3 to_diropargs3(const Handle& directory, std::string_view name) {
  return {to_nfs_fh3(directory), std::string(name)};
}

template <class Resok>
Made to_made(const Resok& resok) {
  return {to_handle(resok.obj), to_attributes(resok.obj_attributes)};
}

// RFC 1813 3.3.8: unlike that of any other request, by whichever mount of whichever machine.
v3::createverf3 fresh_verifier() {
  std::random_device random;
  v3::createverf3 verifier;
  store_be(verifier.data(), static_cast<std::uint32_t>(random()));
  store_be(verifier.data() + 4, static_cast<std::uint32_t>(random()));
  return verifier;
}

}  // namespace

Task<Outcome<Made>> Nfs3::create(OperationContext context, Handle directory, std::string_view name,
                                 SetAttributes attributes, CreateMode mode) {
  v3::CREATE3args args;
  args.where = to_diropargs3(directory, name);
  if (is_exclusive(mode)) {
    args.how.mode = v3::EXCLUSIVE;
    args.how.verf() = fresh_verifier();
  } else {
    args.how.mode = mode == CreateMode::Guarded ? v3::GUARDED : v3::UNCHECKED;
    args.how.obj_attributes() = to_sattr3(attributes);
  }
  const auto resok = co_await client_.call<v3::NFSPROC3_CREATE>(args, context);
  if (!resok) co_return Failure{resok.error()};
  co_return to_made(*resok);
}

Task<Outcome<Made>> Nfs3::mkdir(OperationContext context, Handle directory, std::string_view name,
                                SetAttributes attributes) {
  const v3::MKDIR3args args{to_diropargs3(directory, name), to_sattr3(attributes)};
  const auto resok = co_await client_.call<v3::NFSPROC3_MKDIR>(args, context);
  if (!resok) co_return Failure{resok.error()};
  co_return to_made(*resok);
}

Task<Outcome<Made>> Nfs3::symlink(OperationContext context, Handle directory, std::string_view name,
                                  std::string target, SetAttributes attributes) {
  v3::SYMLINK3args args;
  args.where = to_diropargs3(directory, name);
  args.symlink.symlink_attributes = to_sattr3(attributes);
  args.symlink.symlink_data = std::move(target);
  const auto resok = co_await client_.call<v3::NFSPROC3_SYMLINK>(args, context);
  if (!resok) co_return Failure{resok.error()};
  co_return to_made(*resok);
}

Task<Outcome<Made>> Nfs3::mknod(OperationContext context, Handle directory, std::string_view name,
                                Special special, SetAttributes attributes) {
  v3::MKNOD3args args;
  args.where = to_diropargs3(directory, name);
  args.what.type = to_ftype3(special.type);
  if (special.type == FileType::BlockDevice || special.type == FileType::CharacterDevice) {
    args.what.device().dev_attributes = to_sattr3(attributes);
    args.what.device().spec = {special.device.major, special.device.minor};
  } else {
    args.what.pipe_attributes() = to_sattr3(attributes);
  }
  const auto resok = co_await client_.call<v3::NFSPROC3_MKNOD>(args, context);
  if (!resok) co_return Failure{resok.error()};
  co_return to_made(*resok);
}

Task<Outcome<Ok>> Nfs3::remove(OperationContext context, Handle directory, std::string_view name) {
  const v3::REMOVE3args args{to_diropargs3(directory, name)};
  const auto resok = co_await client_.call<v3::NFSPROC3_REMOVE>(args, context);
  if (!resok) co_return Failure{resok.error()};
  co_return Ok{};
}

Task<Outcome<Ok>> Nfs3::rmdir(OperationContext context, Handle directory, std::string_view name) {
  const v3::RMDIR3args args{to_diropargs3(directory, name)};
  const auto resok = co_await client_.call<v3::NFSPROC3_RMDIR>(args, context);
  if (!resok) co_return Failure{resok.error()};
  co_return Ok{};
}

Task<Outcome<Ok>> Nfs3::rename(OperationContext context, Handle from_directory,
                               std::string_view from, Handle to_directory, std::string_view to) {
  const v3::RENAME3args args{to_diropargs3(from_directory, from), to_diropargs3(to_directory, to)};
  const auto resok = co_await client_.call<v3::NFSPROC3_RENAME>(args, context);
  if (!resok) co_return Failure{resok.error()};
  co_return Ok{};
}

Task<Outcome<Ok>> Nfs3::link(OperationContext context, Handle file, Handle directory,
                             std::string_view name) {
  const v3::LINK3args args{to_nfs_fh3(file), to_diropargs3(directory, name)};
  const auto resok = co_await client_.call<v3::NFSPROC3_LINK>(args, context);
  if (!resok) co_return Failure{resok.error()};
  co_return Ok{};
}

Task<Outcome<Acls>> Nfs3::acls(OperationContext context, Handle object, std::uint32_t reply_max) {
  const nfsacl::GETACL3args args{to_nfs_fh3(object).data, nfsacl::NFS_ACL_MASK};
  const auto resok =
      co_await acl_client_.call<nfsacl::ACLPROC3_GETACL>(args, context, {}, reply_max);
  if (!resok) co_return Failure{resok.error()};
  co_return from_secattr(context, resok->acls);
}

Task<Outcome<Ok>> Nfs3::set_acls(OperationContext context, Handle object, Acls acls,
                                 bool with_defaults) {
  const nfsacl::SETACL3args args{to_nfs_fh3(object).data, to_secattr(acls, with_defaults)};
  const auto resok = co_await acl_client_.call<nfsacl::ACLPROC3_SETACL>(args, context);
  if (!resok) co_return Failure{resok.error()};
  co_return Ok{};
}

}  // namespace stag::nfs::client::nfs3
