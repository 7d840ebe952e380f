// BIND_CONN_TO_SESSION and BACKCHANNEL_CTL (RFC 8881 18.34, 18.33): what carries callbacks.
#include "nfs/v4/callback/back_channel.h"
#include "nfs/v4/compound/machine_credential.h"
#include "nfs/v4/compound/state_status.h"
#include "nfs/v4/ops/connection.h"
#include "nfs/v4/ops/operations.h"

namespace stag::nfs::nfs4 {

namespace {

std::shared_ptr<BackChannel> back_channel_of(const Compound& compound,
                                             const state::SessionId& sessionid) {
  return std::static_pointer_cast<BackChannel>(compound.shared().clients.callback_path(sessionid));
}

}  // namespace

v4::BIND_CONN_TO_SESSION4res bind_conn_to_session(Compound& compound,
                                                  v4::BIND_CONN_TO_SESSION4args& args) {
  namespace channel = state::channel;
  std::uint32_t asked = channel::kBoth;
  std::uint32_t required = 0;
  if (args.bctsa_dir == v4::CDFC4_FORE) asked = required = channel::kFore;
  if (args.bctsa_dir == v4::CDFC4_BACK) asked = required = channel::kBack;
  const v4::nfsstat4 status = check_machine(compound, args.bctsa_sessid);
  if (status != v4::NFS4_OK) return {status, {}};
  const std::shared_ptr<BackChannel> back = back_channel_of(compound, args.bctsa_sessid);
  const state::BindResult bound = compound.shared().clients.bind_connection(
      args.bctsa_sessid, connection_of(compound), asked, required,
      back == nullptr ? state::CallbackConnection() : callbacks_of(compound));
  if (bound.status != state::Status::Ok) return {to_nfsstat4(bound.status), {}};
  if (back != nullptr && (bound.directions & channel::kBack) != 0) back->ask_again();
  v4::BIND_CONN_TO_SESSION4res results;
  auto& ok = results.bctsr_resok4();
  ok.bctsr_sessid = args.bctsa_sessid;
  ok.bctsr_dir = static_cast<v4::channel_dir_from_server4>(bound.directions);
  return results;
}

v4::BACKCHANNEL_CTL4res backchannel_ctl(Compound& compound, v4::BACKCHANNEL_CTL4args& args) {
  const std::shared_ptr<BackChannel> back =
      back_channel_of(compound, compound.slot()->slot.sessionid);
  auto credentials = usable_credentials(args.bca_sec_parms);
  if (back == nullptr || !credentials) return {v4::NFS4ERR_INVAL};
  back->replace(args.bca_cb_program, *std::move(credentials));
  return {v4::NFS4_OK};
}

}  // namespace stag::nfs::nfs4
