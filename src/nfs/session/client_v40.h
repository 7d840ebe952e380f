// The client ID of NFSv4.0 (RFC 7530 sections 9.1.1, 16.33, 16.34): SETCLIENTID, then
// SETCLIENTID_CONFIRM; from the start again when the server has forgotten it. Version 4.0 has no
// session: only what opens or locks needs a client ID. Where the client listens for callbacks
// (section 10.2), SETCLIENTID says so. Pure, like Session.
#pragma once

#include "nfs/session/session.h"

namespace stag::nfs::session {

class ClientV40 {
 public:
  enum class Step : std::uint8_t { SetClientid, Confirm, Ready };

  // Of a callback service: its address as netid and universal address (RFC 5665), and the number
  // by which the server says whom it means.
  struct Listening {
    v4::clientaddr4 at;
    std::uint32_t ident = 0;
  };

  explicit ClientV40(Identity identity) : identity_(std::move(identity)) {}
  // Before the first step.
  void listens(Listening listening) { listening_ = std::move(listening); }
  const std::optional<Listening>& listening() const { return listening_; }

  Step step() const { return step_; }
  v4::SETCLIENTID4args set_clientid() const;
  v4::SETCLIENTID_CONFIRM4args confirm() const { return {clientid_, confirm_}; }
  Fate on_set_clientid(const v4::SETCLIENTID4res& results);
  Fate on_confirm(v4::nfsstat4 status);

  // Of a COMPOUND that needs the client ID, and was sent in this incarnation: Again when the client
  // ID, or what belongs to it, was not known to the server, Go for everything else. That a claim is
  // answered does not mean that the client ID is of use for anything else. State: an operation by
  // an open, or by locks, of which alone the server may say NFS4ERR_EXPIRED.
  enum class Of : std::uint8_t { Operation, State, Claim };
  Fate on_status(v4::nfsstat4 status, std::uint32_t sent_in, Of of = Of::Operation);
  // An owner of opens was of no use: Again with another one, as often as may be.
  Fate on_bad_owner() {
    return ++recoveries_ > Session::kMostRecoveries ? Fate::Unsteady : Fate::Again;
  }
  // How often a client ID was confirmed; opens and locks belong to one of them.
  std::uint32_t incarnation() const { return incarnation_; }

  v4::clientid4 clientid() const { return clientid_; }

 private:
  Fate from_the_start();

  Identity identity_;
  Step step_ = Step::SetClientid;
  std::optional<Listening> listening_;
  std::uint32_t recoveries_ = 0;  // since an operation was answered
  std::uint32_t incarnation_ = 0;
  v4::clientid4 clientid_ = 0;
  v4::verifier4 confirm_{};
};

}  // namespace stag::nfs::session
