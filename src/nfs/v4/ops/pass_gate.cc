// What operations without a stateid ask of those who have the object open or delegated (RFC
// 8881 9.7, 10.4).
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

Task<v4::nfsstat4> pass_gate(Compound& compound, ExportObject object, state::Touch touch) {
  state::Files& files = compound.shared().files;
  if (!files.guarded()) co_return v4::NFS4_OK;
  struct Asked {
    state::Verdict verdict;
  };
  const state::FileKey file = object.key();
  const Asked asked = co_await settled_in_time(
      compound, file, [&] { return Asked{files.access(file, touch, compound.life().get())}; });
  co_return status_of(asked.verdict);
}

Task<v4::nfsstat4> pass_gate(Compound& compound, ExportObject directory, std::string name,
                             state::Touch touch) {
  if (!compound.shared().files.guarded()) co_return v4::NFS4_OK;
  const auto found = co_await directory.store().lookup(directory.caller(), directory.handle, name);
  if (!found) co_return v4::NFS4_OK;
  directory.handle = found->node.handle;
  co_return co_await pass_gate(compound, directory, touch);
}

}  // namespace stag::nfs::nfs4
