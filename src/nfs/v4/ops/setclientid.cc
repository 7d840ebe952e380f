// SETCLIENTID, SETCLIENTID_CONFIRM and RELEASE_LOCKOWNER (RFC 7530 16.33, 16.34, 16.37).
#include "base/reason.h"
#include "nfs/v4/callback/callback_address.h"
#include "nfs/v4/callback/callbacks.h"
#include "nfs/v4/compound/limit_notes.h"
#include "nfs/v4/compound/state_status.h"
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

namespace {

// Null where the client is not called: it wants no callbacks, or names what is not connected to.
std::shared_ptr<BackChannel> callback_path_of(const Compound& compound,
                                              const v4::SETCLIENTID4args& args) {
  const Callbacks* const callbacks = compound.shared().callbacks.load(std::memory_order_acquire);
  if (callbacks == nullptr || !callbacks->connects()) return nullptr;
  const rpc::CallContext& call = compound.admission().call();
  auto credentials = callback_credentials(call.caller());
  if (!credentials || !names_callback(args.callback)) return nullptr;
  const std::string& client = call.origin().peer.host;
  auto address = callback_address(args.callback, client, compound.shared().callback_networks);
  if (!address) {
    trace(Reason::CallbackAddressRefused, client, args.callback.cb_location.na_r_addr);
    return nullptr;
  }
  return std::make_shared<BackChannel>(
      CallbackAddress{*std::move(address), client, args.callback_ident}, args.callback.cb_program,
      *std::move(credentials));
}

}  // namespace

v4::SETCLIENTID4res setclientid(Compound& compound, v4::SETCLIENTID4args& args) {
  compound.shared().expire(compound.now());
  const std::string principal = compound.principal();
  const Buffer id = args.client.id.flatten();
  const state::SetClientIdResult set = compound.shared().clients.set_clientid(
      {id.bytes(), args.client.verifier, bytes_of(principal),
       compound.admission().call().origin().peer.host, callback_path_of(compound, args)},
      compound.now());
  compound.shared().release(set.ended);
  note_evicted(compound, set.evicted);
  v4::SETCLIENTID4res results;
  results.status = to_nfsstat4(set.status);
  if (results.status == v4::NFS4ERR_CLID_INUSE) results.client_using() = {};
  if (results.status != v4::NFS4_OK) return results;
  results.resok4() = {set.clientid, set.confirm};
  return results;
}

v4::SETCLIENTID_CONFIRM4res setclientid_confirm(Compound& compound,
                                                v4::SETCLIENTID_CONFIRM4args& args) {
  // As in CREATE_SESSION.
  compound.shared().expire(compound.now());
  const std::string principal = compound.principal();
  state::Clients& clients = compound.shared().clients;
  const auto confirm = [&] {
    return clients.confirm_clientid(args.clientid, args.setclientid_confirm, bytes_of(principal),
                                    compound.now());
  };
  state::ConfirmResult confirmed = confirm();
  if (confirmed.lapsed != 0) {
    compound.shared().end_lapsed(confirmed.lapsed, EndedFor::NewClient);
    confirmed = confirm();
  }
  compound.shared().release(confirmed.ended);
  if (confirmed.limit != state::Limit::None)
    note_limit(compound, Reason::Nfs4ClientsTooMany, args.clientid, name_of(confirmed.limit));
  if (const state::LifePtr life = clients.life(args.clientid);
      confirmed.status == state::Status::Ok && life != nullptr) {
    compound.shared().admit(*life);
    compound.shared().watch_leases();
  }
  return {to_nfsstat4(confirmed.status)};
}

v4::RELEASE_LOCKOWNER4res release_lockowner(Compound& compound, v4::RELEASE_LOCKOWNER4args& args) {
  const v4::clientid4 clientid = args.lock_owner.clientid;
  const v4::nfsstat4 nobody = compound.identify(clientid);
  if (nobody != v4::NFS4_OK) return {nobody};
  const Buffer owner = args.lock_owner.owner.flatten();
  SharedState& shared = compound.shared();
  const std::vector<state::Stateid> locks = shared.owners.locks(clientid, owner.bytes());
  for (const state::Stateid& stateid : locks)
    if (shared.files.holds_ranges(stateid)) return {v4::NFS4ERR_LOCKS_HELD};
  for (const state::Stateid& stateid : locks)
    shared.files.free_stateid({0, stateid.other}, *compound.life());
  shared.owners.forget(state::OwnerKind::Lock, clientid, owner.bytes());
  return {v4::NFS4_OK};
}

}  // namespace stag::nfs::nfs4
