#include "nfs/client/v4/offloads.h"

namespace stag::nfs::client::nfs4 {

v4::nfsstat4 Offloads::on_end(const v4::CB_OFFLOAD4args& args) {
  const auto is_meant = [&args](const Copy* copy) {
    return copy->stateid == args.coa_stateid && copy->file == args.coa_fh;
  };
  const auto found = std::ranges::find_if(copies_, is_meant);
  if (found == copies_.end()) return asking_ > 0 ? v4::NFS4ERR_DELAY : v4::NFS4ERR_BAD_STATEID;
  Copy& copy = **found;
  // Said again, it is what it was.
  if (!copy.end) copy.end = args.coa_offload_info;
  if (copy.told != nullptr) copy.told->cancel();
  return v4::NFS4_OK;
}

}  // namespace stag::nfs::client::nfs4
