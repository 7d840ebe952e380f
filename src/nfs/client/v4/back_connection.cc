// A connection of its own for callbacks of a session, where that of the session has no reverse
// direction (RFC 8167 section 3.2; RFC 8881 sections 2.10.3.1, 18.34).
#include "base/pause.h"
#include "nfs/client/v4/in_progress.h"
#include "nfs/client/v4/session_client.h"
#include "nfs/ulb/nfs4_client.h"

namespace stag::nfs::client::nfs4 {

Task<void> SessionClient::bind_back_once(v4::sessionid4 sessionid) {
  v4::COMPOUND4args args;
  args.minorversion = minor_;
  args.argarray.emplace_back().argop = v4::OP_BIND_CONN_TO_SESSION;
  v4::BIND_CONN_TO_SESSION4args& bind = args.argarray.front().opbind_conn_to_session();
  bind.bctsa_sessid = sessionid;
  bind.bctsa_dir = v4::CDFC4_BACK;
  ProtocolOptions options = background_options();
  options.cancel = CancelToken(stop_);
  rpc::Client client(*back_, ulb::nfs4_client(), machine_);
  const auto came = co_await client.call<v4::NFSPROC4_COMPOUND>(args, machine_call({}, options));
  const bool current = sessionid == session_.sessionid();
  if (came && came->status == v4::NFS4_OK && current) reached_ = true;
  // Not again at once, where that did not help.
  if (!reached_ && current) co_await pause(channel().loop(), session_.lease() / 9, options.cancel);
}

// Binds it to the session that is there now: to a new one, also to one that was made meanwhile, and
// again after it was lost.
Task<void> SessionClient::bind_back_connection() {
  const Underway restoring(restoring_);
  v4::sessionid4 tried{};
  do {
    tried = session_.sessionid();
    co_await bind_back_once(tried);
  } while (tried != session_.sessionid() && !stop_.cancelled());
}

}  // namespace stag::nfs::client::nfs4
