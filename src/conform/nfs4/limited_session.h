// A session of a client beside its first one, with the limits of a case.
#pragma once

#include <string>

#include "conform/nfs4/client.h"

namespace stag::conform::nfs4 {

struct LimitedSession {
  std::string trouble{};  // there is none: why
  v4::CREATE_SESSION4resok session{};

  // Slot 0 of the session, for the first time.
  v4::SEQUENCE4args sequence(bool cachethis) const;
  // Skipped where the server makes no session of such limits.
  Verdict verdict() const;
};

// The limits of one slot that takes requests, replies and kept replies of these sizes.
v4::channel_attrs4 limits_of(std::uint32_t request, std::uint32_t response, std::uint32_t cached);
Task<LimitedSession> limited_session(Client& client, v4::channel_attrs4 fore);
Task<void> destroy(Client& client, v4::sessionid4 session);

}  // namespace stag::conform::nfs4
