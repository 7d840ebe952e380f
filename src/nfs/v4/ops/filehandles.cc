// PUTROOTFH, PUTPUBFH, PUTFH, GETFH, SAVEFH and RESTOREFH (RFC 8881 18.8, 18.19 to 18.21, 18.27,
// 18.28).
#include "nfs/v4/ops/operations.h"

namespace stag::nfs::nfs4 {

namespace {

v4::nfsstat4 put_root(Compound& compound) {
  auto root = compound.enter(compound.pseudo_fs().root(), compound.security());
  if (!root) return root.error();
  compound.set_current(*std::move(root));
  return v4::NFS4_OK;
}

}  // namespace

v4::PUTROOTFH4res putrootfh(Compound& compound) {
  return {put_root(compound)};
}

// 18.20.3: without a public filehandle of its own a server takes the root's.
v4::PUTPUBFH4res putpubfh(Compound& compound) {
  return {put_root(compound)};
}

Eventual<v4::nfsstat4> putfh(Compound& compound, PutfhArguments& args, xdr::Encoder& results) {
  v4::nfsstat4 status = v4::NFS4_OK;
  if (compound.puts_foreign())
    compound.set_current(ForeignHandle{args.object});
  else
    status = compound.put(args.object);
  results.u32(status);
  return status;
}

v4::GETFH4res getfh(Compound& compound) {
  v4::GETFH4res results;
  results.resok4().object = v4::nfs_fh4(compound.handle_of(compound.current()).bytes());
  return results;
}

v4::SAVEFH4res savefh(Compound& compound) {
  compound.save();
  return {v4::NFS4_OK};
}

v4::RESTOREFH4res restorefh(Compound& compound) {
  if (!compound.has_saved()) return {v4::NFS4ERR_NOFILEHANDLE};
  if (has_wrong_security(compound.saved()) && compound.security() == Compound::Security::Checked)
    return {v4::NFS4ERR_WRONGSEC};
  compound.restore();
  return {v4::NFS4_OK};
}

}  // namespace stag::nfs::nfs4
