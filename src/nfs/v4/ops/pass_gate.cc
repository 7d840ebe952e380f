// What operations without a stateid ask of those who have the object open or delegated (RFC
// 8881 9.7, 10.4).
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

Task<Permitted> pass_gate(Compound& compound, ExportObject object, Intent intent) {
  const auto ask = [&] {
    return compound.shared().files.access(object.key(), intent.touch, compound.life().get());
  };
  state::Permit permit = ask();
  if (permit.granted()) co_return std::move(permit.change);
  co_return co_await permitted_in_time(compound, object, intent, ask);
}

Task<v4::nfsstat4> pass_gate_to_unlink(Compound& compound, ExportObject directory,
                                       std::string name) {
  if (!compound.shared().files.guarded()) co_return v4::NFS4_OK;
  const auto found = co_await directory.store().lookup(directory.caller(), directory.handle, name);
  if (!found) co_return v4::NFS4_OK;
  ExportObject object = directory;
  object.handle = found->node.handle;
  const Intent intent{.touch = state::Touch::Unlink, .directory = &directory};
  const auto permitted = co_await pass_gate(compound, object, intent);
  co_return permitted ? v4::NFS4_OK : permitted.error();
}

}  // namespace stag::nfs::nfs4
