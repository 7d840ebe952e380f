#include "nfs/session/client_v40.h"

namespace stag::nfs::session {

v4::SETCLIENTID4args ClientV40::set_clientid() const {
  v4::SETCLIENTID4args args;
  args.client.id = Rope::copy_of(bytes_of(identity_.owner));
  args.client.verifier = identity_.verifier;
  // RFC 7530 16.33.4: the program is the client's choice, from the transient range.
  args.callback.cb_program = v4::NFS4_CALLBACK;
  // No client listens at port 0, so that nothing is delegated.
  args.callback.cb_location = {"tcp", "0.0.0.0.0.0"};
  if (listening_) {
    args.callback.cb_location = listening_->at;
    args.callback_ident = listening_->ident;
  }
  return args;
}

Fate ClientV40::from_the_start() {
  step_ = Step::SetClientid;
  return ++recoveries_ > Session::kMostRecoveries ? Fate::Unsteady : Fate::Again;
}

Fate ClientV40::on_set_clientid(const v4::SETCLIENTID4res& results) {
  if (results.status == v4::NFS4ERR_DELAY) return Fate::Later;
  if (results.status != v4::NFS4_OK) return Fate::Refused;
  clientid_ = results.resok4().clientid;
  confirm_ = results.resok4().setclientid_confirm;
  step_ = Step::Confirm;
  return Fate::Go;
}

Fate ClientV40::on_confirm(v4::nfsstat4 status) {
  if (status == v4::NFS4ERR_DELAY) return Fate::Later;
  if (status == v4::NFS4ERR_STALE_CLIENTID) return from_the_start();
  if (status != v4::NFS4_OK) return Fate::Refused;
  step_ = Step::Ready;
  ++incarnation_;
  return Fate::Go;
}

Fate ClientV40::on_status(v4::nfsstat4 status, std::uint32_t sent_in, Of of) {
  // RFC 7530 9.6.3.1, 13.1.5.3: the server may have given others what this stood for, and nothing
  // else of the client; whether it knows the client, it says to the OPEN that follows.
  if (status == v4::NFS4ERR_EXPIRED && of == Of::State && sent_in == incarnation_) return Fate::Go;
  switch (status) {
    case v4::NFS4ERR_STALE_CLIENTID:
    case v4::NFS4ERR_STALE_STATEID:  // RFC 7530 9.1.1: the server has restarted
    case v4::NFS4ERR_EXPIRED:
      // Another call may have begun again meanwhile.
      return sent_in == incarnation_ && step_ == Step::Ready ? from_the_start() : Fate::Again;
    case v4::NFS4ERR_BAD_SEQID:
      return Fate::Go;
    default:
      if (of != Of::Claim) recoveries_ = 0;
      return Fate::Go;
  }
}

}  // namespace stag::nfs::session
