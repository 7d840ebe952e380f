// CallbackServiceV40: what a server of NFSv4.0 asks of this client (RFC 7530 section 15.2): to give
// a delegation back. The server connects to where the client listens (RFC 8167 section 3.1), which
// SETCLIENTID has told it, with the number by which it says whom it means.
//
//   CB_RECALL   the delegation is given back in the background; BAD_STATEID: there is none, or the
//               answer that gives it is still on its way, and the server asks again
//   CB_GETATTR  BADHANDLE: no write delegation is held
//
// Who else connects learns and changes nothing but what the server could ask, too: without the
// number nothing is meant.
//
// Thread: the loop of the connections. It outlives them.
#pragma once

#include <cstdint>

#include "nfs/client/v4/callback_service.h"
#include "nfs/session/client_v40.h"

namespace stag::nfs::client::nfs4 {

class CallbackServiceV40 {
 public:
  CallbackServiceV40();
  rpc::Service& service() { return server_; }
  // The address of the listener that serves it.
  void listens_at(const Address& at);

  // What SETCLIENTID says.
  const session::ClientV40::Listening& listening() const { return listening_; }
  // Callbacks are for `holder`; null: for nobody any more.
  void begin(Recalled* holder) { holder_ = holder; }

 private:
  v4::CB_COMPOUND4res answered(const v4::CB_COMPOUND4args& args);
  v4::nfsstat4 answered(const v4::nfs_cb_argop4& operation, bool meant, v4::nfs_cb_resop4& result);

  rpc::Server server_;
  session::ClientV40::Listening listening_;
  Recalled* holder_ = nullptr;
};

}  // namespace stag::nfs::client::nfs4
