// What two MPA endpoints agree on (RFC 5044 section 7.1, RFC 6581 section 9), as pure functions.
#pragma once

#include "iwarp/mpa.h"
#include "iwarp/terminate.h"

namespace stag::iwarp {

// What this endpoint wants. RFC 5044 4.4: CRCs are the default; `crc` = false is the explicit
// request of an administrator, and CRCs are then used only if the peer asks for them.
struct MpaOptions {
  bool crc = true;
  std::uint16_t ird = 32;  // Read Requests we are ready to serve at once
  std::uint16_t ord = 32;  // Read Requests we want to keep outstanding
  // RFC 6581 section 6: revision 1 peers must be accepted. They negotiate no depths, so these hold.
  bool accept_unenhanced = true;
  std::uint16_t unenhanced_ird = 32;
  std::uint16_t unenhanced_ord = 1;
};

// The connection's parameters after set-up.
struct Negotiated {
  bool crc = false;
  bool markers_to_send = false;  // the peer requires them; we never do
  // Inbound Read Requests to accept. Never less than what we announced, and rounded up to a power
  // of two, because Linux siw rounds its side up likewise.
  std::uint16_t ird = 0;
  std::uint16_t ord = 0;  // outbound Read Requests never to exceed
};

// -- initiator --------------------------------------------------------------------------------

// Always revision 2, enhanced, never markers, never peer-to-peer: a Linux peer can fail badly on
// the last and refuses the first.
MpaFrame make_request(const MpaOptions& options, Bytes private_data);

// A Reply that ends the attempt. With a terminate, RFC 6581 wants it sent before the close.
struct ReplyRefused {
  Reason reason;
  std::optional<Terminate> terminate;
};
// `request` is what make_request returned.
Result<Negotiated, ReplyRefused> judge_reply(const MpaOptions& options, const MpaFrame& request,
                                             const MpaFrame& reply);

// -- responder --------------------------------------------------------------------------------

// Fails when the TCP connection is to be closed without an answer. The ULP's word on the private
// data comes after this, in the form of make_reply or make_reject.
Result<Negotiated, Reason> judge_request(const MpaOptions& options, const MpaFrame& request);
// `negotiated` is what judge_request returned for `request`. The responder sends nothing behind the
// Reply until it has received an FPDU (RFC 5044 7.1.2 rule 4).
MpaFrame make_reply(const MpaOptions& options, const MpaFrame& request,
                    const Negotiated& negotiated, Bytes private_data);
MpaFrame make_reject(const MpaOptions& options, const MpaFrame& request, Bytes private_data);

}  // namespace stag::iwarp
