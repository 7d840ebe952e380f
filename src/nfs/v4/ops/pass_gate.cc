// What operations without a stateid ask of those who have the object open or delegated (RFC
// 8881 9.7, 10.4).
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

Task<Permitted> pass_gate(Compound& compound, ExportObject object, state::Touch touch) {
  state::Files& files = compound.shared().files;
  const state::FileKey file = object.key();
  Asked asked = co_await settled_in_time(
      compound, file, [&] { return Asked{files.access(file, touch, compound.life().get())}; });
  if (!asked.verdict.granted()) co_return Failure{status_of(asked.verdict)};
  co_return std::move(asked.verdict.change);
}

Task<v4::nfsstat4> pass_gate(Compound& compound, ExportObject directory, std::string name,
                             state::Touch touch) {
  if (!compound.shared().files.guarded()) co_return v4::NFS4_OK;
  const auto found = co_await directory.store().lookup(directory.caller(), directory.handle, name);
  if (!found) co_return v4::NFS4_OK;
  directory.handle = found->node.handle;
  const auto permitted = co_await pass_gate(compound, directory, touch);
  co_return permitted ? v4::NFS4_OK : permitted.error();
}

}  // namespace stag::nfs::nfs4
