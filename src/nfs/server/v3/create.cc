// CREATE, MKDIR, SYMLINK and MKNOD (RFC 1813 3.3.8 to 3.3.11).
#include "nfs/server/v3/procedures.h"
#include "nfs/ulb/nfs3.h"

namespace stag::nfs::nfs3 {

namespace {

// The results of all four have the same members.
template <class Res>
Task<Res> answer(const Request& request, const ExportObject& directory,
                 vfs::Outcome<vfs::Created> created) {
  Res res;
  if (created) {
    res.status = v3::NFS3_OK;
    auto& ok = res.resok();
    ok.obj = request.post_op_fh(directory, created->node.handle);
    ok.obj_attributes = to_post_op_attr(created->node.attributes);
    ok.dir_wcc = to_wcc_data(created->directory);
    co_return res;
  }
  res.status = request.failure(created.error());
  res.resfail().dir_wcc = co_await wcc_now(directory);
  co_return res;
}

// nullopt when an attribute has an impossible value.
std::optional<vfs::CreateHow> to_create_how(const v3::createhow3& how) {
  vfs::CreateHow to;
  if (how.mode == v3::EXCLUSIVE) {
    to.mode = vfs::CreateMode::Exclusive;
    to.verifier = how.verf();
    return to;
  }
  to.mode = how.mode == v3::GUARDED ? vfs::CreateMode::Guarded : vfs::CreateMode::Unchecked;
  const auto attributes = from_sattr3(how.obj_attributes());
  if (!attributes) return std::nullopt;
  to.attributes = *attributes;
  return to;
}

// Why a symbolic link cannot have this text, checked before the store is called.
std::optional<vfs::Status> refusal(const std::string& target) {
  // READLINK promises no more to clients that size their memory by it.
  if (target.size() > ulb::kMaxLinkText) return vfs::Status::NameTooLong;
  // A store that passes the text to a system call would lose the part behind a NUL.
  if (target.find('\0') != std::string::npos) return vfs::Status::Invalid;
  return std::nullopt;
}

// The object that MKNOD makes; BADTYPE for types that have procedures of their own (3.3.11).
struct NewObject {
  v3::nfsstat3 status = v3::NFS3_OK;
  vfs::Special special;
  vfs::SetAttributes attributes;
};

NewObject to_new_object(const v3::mknoddata3& what) {
  NewObject object;
  const v3::sattr3* attributes = nullptr;
  switch (what.type) {
    case v3::NF3CHR:
    case v3::NF3BLK:
      object.special.type =
          what.type == v3::NF3CHR ? vfs::FileType::CharacterDevice : vfs::FileType::BlockDevice;
      object.special.device = {what.device().spec.specdata1, what.device().spec.specdata2};
      attributes = &what.device().dev_attributes;
      break;
    case v3::NF3SOCK:
    case v3::NF3FIFO:
      object.special.type = what.type == v3::NF3SOCK ? vfs::FileType::Socket : vfs::FileType::Fifo;
      attributes = &what.pipe_attributes();
      break;
    default:
      object.status = v3::NFS3ERR_BADTYPE;
      return object;
  }
  const auto converted = from_sattr3(*attributes);
  if (converted)
    object.attributes = *converted;
  else
    object.status = v3::NFS3ERR_INVAL;
  return object;
}

}  // namespace

Task<v3::CREATE3res> create(Request request, v3::CREATE3args args) {
  const auto directory = co_await request.resolve(args.where.dir);
  if (!directory) co_return failed<v3::CREATE3res>(request.failure(directory.error()));
  const auto how = to_create_how(args.how);
  vfs::Outcome<vfs::Created> created = Failure{vfs::Status::Invalid};
  std::optional<vfs::Status> refused;
  if (directory->read_only())
    refused = vfs::Status::ReadOnly;
  else if (how && request.guarded())
    refused = co_await request.refused_create(*directory, args.where.name, *how);
  if (refused)
    created = Failure{*refused};
  else if (how)
    created = co_await directory->store().create(directory->caller(), directory->handle,
                                                 args.where.name, *how);
  co_return co_await answer<v3::CREATE3res>(request, *directory, std::move(created));
}

Task<v3::MKDIR3res> mkdir(Request request, v3::MKDIR3args args) {
  const auto directory = co_await request.resolve(args.where.dir);
  if (!directory) co_return failed<v3::MKDIR3res>(request.failure(directory.error()));
  const auto attributes = from_sattr3(args.attributes);
  vfs::Outcome<vfs::Created> created = Failure{vfs::Status::Invalid};
  if (directory->read_only())
    created = Failure{vfs::Status::ReadOnly};
  else if (attributes)
    created = co_await directory->store().mkdir(directory->caller(), directory->handle,
                                                args.where.name, *attributes);
  co_return co_await answer<v3::MKDIR3res>(request, *directory, std::move(created));
}

Task<v3::SYMLINK3res> symlink(Request request, v3::SYMLINK3args args) {
  const auto directory = co_await request.resolve(args.where.dir);
  if (!directory) co_return failed<v3::SYMLINK3res>(request.failure(directory.error()));
  const auto attributes = from_sattr3(args.symlink.symlink_attributes);
  const auto refused = refusal(args.symlink.symlink_data);
  vfs::Outcome<vfs::Created> created = Failure{refused.value_or(vfs::Status::Invalid)};
  if (directory->read_only())
    created = Failure{vfs::Status::ReadOnly};
  else if (attributes && !refused)
    created =
        co_await directory->store().symlink(directory->caller(), directory->handle, args.where.name,
                                            args.symlink.symlink_data, *attributes);
  co_return co_await answer<v3::SYMLINK3res>(request, *directory, std::move(created));
}

Task<v3::MKNOD3res> mknod(Request request, v3::MKNOD3args args) {
  const auto directory = co_await request.resolve(args.where.dir);
  if (!directory) co_return failed<v3::MKNOD3res>(request.failure(directory.error()));
  const NewObject object = to_new_object(args.what);
  vfs::Outcome<vfs::Created> created = Failure{vfs::Status::BadType};
  if (directory->read_only())
    created = Failure{vfs::Status::ReadOnly};
  else if (object.status == v3::NFS3ERR_INVAL)
    created = Failure{vfs::Status::Invalid};
  else if (object.status == v3::NFS3_OK)
    created = co_await directory->store().mknod(directory->caller(), directory->handle,
                                                args.where.name, object.special, object.attributes);
  co_return co_await answer<v3::MKNOD3res>(request, *directory, std::move(created));
}

}  // namespace stag::nfs::nfs3
