// CREATE (RFC 8881 18.4): everything but regular files.
#include "nfs/v4/compound/status.h"
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/set_acl.h"

namespace stag::nfs::nfs4 {

namespace {

vfs::Operation<vfs::Created> make(const ExportObject& directory, const v4::createtype4& type,
                                  const std::string& name, const std::string& target,
                                  const vfs::SetAttributes& values) {
  vfs::FileSystem& store = directory.store();
  const auto special = [&](vfs::FileType kind, v4::specdata4 device) {
    return store.mknod(directory.caller(), directory.handle, name,
                       {kind, {device.specdata1, device.specdata2}}, values);
  };
  switch (type.type) {
    case v4::NF4DIR:
      return store.mkdir(directory.caller(), directory.handle, name, values);
    case v4::NF4LNK:
      return store.symlink(directory.caller(), directory.handle, name, target, values);
    case v4::NF4BLK:
    case v4::NF4CHR:
      return special(
          type.type == v4::NF4BLK ? vfs::FileType::BlockDevice : vfs::FileType::CharacterDevice,
          type.devdata());
    case v4::NF4SOCK:
      return special(vfs::FileType::Socket, {});
    case v4::NF4FIFO:
      return special(vfs::FileType::Fifo, {});
    default:
      return Failure{vfs::Status::BadType};
  }
}

std::string target_of(const v4::createtype4& type) {
  return type.type == v4::NF4LNK ? std::string(text_of(type.linkdata().flatten().bytes()))
                                 : std::string();
}

}  // namespace

Task<v4::CREATE4res> create(Compound& compound, v4::CREATE4args& args) {
  if (const v4::nfsstat4 bad = check_name(args.objname); bad != v4::NFS4_OK)
    co_return v4::CREATE4res{bad, {}};
  auto wanted = decode_attributes(args.createattrs);
  if (!wanted) co_return v4::CREATE4res{wanted.error(), {}};
  if (const v4::nfsstat4 bad = co_await compound.resolve_names(*wanted); bad != v4::NFS4_OK)
    co_return v4::CREATE4res{bad, {}};
  const ExportObject directory = compound.object();
  if (directory.read_only()) co_return v4::CREATE4res{v4::NFS4ERR_ROFS, {}};
  const std::string target = target_of(args.objtype);
  if (args.objtype.type == v4::NF4LNK && (target.empty() || target.find('\0') != target.npos))
    co_return v4::CREATE4res{v4::NFS4ERR_INVAL, {}};
  const auto made = co_await make(directory, args.objtype, args.objname, target, wanted->values);
  if (!made) co_return v4::CREATE4res{to_nfsstat4(made.error()), {}};
  ExportObject object = directory;
  object.handle = made->node.handle;
  compound.set_current(object);
  v4::CREATE4res results;
  results.resok4().cinfo = to_change_info4(made->directory);
  AttributeSet set = wanted->set;
  if (wanted->acl && co_await set_acl(object, *wanted->acl) != v4::NFS4_OK)
    set = set - AttributeSet{v4::FATTR4_ACL};
  results.resok4().attrset = set.bitmap();
  co_return results;
}

}  // namespace stag::nfs::nfs4
