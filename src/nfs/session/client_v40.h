// The client ID of NFSv4.0 (RFC 7530 sections 9.1.1, 16.33, 16.34): SETCLIENTID, then
// SETCLIENTID_CONFIRM; from the start again when the server has forgotten it. Version 4.0 has no
// session: only what opens or locks needs a client ID. Pure, like Session.
#pragma once

#include "nfs/session/session.h"

namespace stag::nfs::session {

class ClientV40 {
 public:
  enum class Step : std::uint8_t { SetClientid, Confirm, Ready };

  explicit ClientV40(Identity identity) : identity_(std::move(identity)) {}

  Step step() const { return step_; }
  v4::SETCLIENTID4args set_clientid() const;
  v4::SETCLIENTID_CONFIRM4args confirm() const { return {clientid_, confirm_}; }
  Fate on_set_clientid(const v4::SETCLIENTID4res& results);
  Fate on_confirm(v4::nfsstat4 status);

  // Of a COMPOUND that opens, and so needs the client ID: Again when it was not known to the
  // server, Go for everything else.
  Fate on_status(v4::nfsstat4 status);

  v4::clientid4 clientid() const { return clientid_; }

 private:
  Fate from_the_start();

  Identity identity_;
  Step step_ = Step::SetClientid;
  std::uint32_t recoveries_ = 0;  // since a COMPOUND was answered
  v4::clientid4 clientid_ = 0;
  v4::verifier4 confirm_{};
};

}  // namespace stag::nfs::session
