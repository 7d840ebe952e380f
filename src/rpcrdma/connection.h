// RPC-over-RDMA version 1 (RFC 8166, 8167, 8797) as a pure core: bytes and events in, actions out.
//
// One Connection serves one transport connection, at one end of it. It has a Requester for the
// Calls this end sends and a Responder for those it receives; at the connecting end the first is
// the forward direction and the second the reverse one, at the accepting end it is the other way
// round (RFC 8167). Nothing else differs between the ends.
//
// It owns no socket, thread, clock or lock and holds no payload. The owner (rpc/rdma) feeds events
// and performs the actions of its Sink in order: memory is named {call, item, offset, length}, and
// only the owner knows where it lies. Everything on one thread. No allocation in steady state.
//
// What a peer sends is decided in this order: RDMA_ERROR goes to the Requester alone; a header that
// does not decode is answered by the Responder when it can be a Call, else dropped; a Read list
// makes a Call; then the RPC direction word decides, and XIDs are looked up only among Calls of
// ours (RFC 8167 2.4). Every drop, error and close has its Reason.
//
// A life: construct, start(), events, on_disconnect(), destroy. Never destroyed inside a Sink call.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/reason.h"
#include "rpcrdma/header.h"
#include "rpcrdma/private_data.h"
#include "rpcrdma/requester.h"
#include "rpcrdma/responder.h"
#include "rpcrdma/sink.h"

namespace stag::rpcrdma {

// Receives for messages that belong to no credit, such as late errors.
inline constexpr std::uint32_t kSpareReceives = 2;

struct Settings {
  Thresholds thresholds;  // of this connection; fixed for its life
  // Requester.
  std::uint32_t credits_requested = 64;
  bool reserve_probe_credit = false;
  std::uint32_t max_segments = 16;  // per chunk we offer
  PeerQuirks quirks;
  bool requests_chunks = true;
  // Responder. 0 credits: no Calls are served until serve_calls().
  std::uint32_t credits_granted = 0;
  bool serves_chunks = true;
  std::uint64_t max_bytes = 64u << 20;
  std::uint32_t max_reads = 64;
  std::uint32_t usual_result_bytes = 4u << 20;
  ByteBudget::Share* budget = nullptr;
  // Both.
  HeaderLimits header_limits;
};

class Connection {
 public:
  Connection(const Settings& settings, Sink& sink);

  // The connection is up: posts the Receives for Replies and Calls.
  void start();

  // A message arrived. `invalidated`: the handle that a Send With Invalidate revoked.
  void on_receive(Bytes message, std::optional<std::uint32_t> invalidated);

  // Requester. A Call to send: at once when there is credit, else when there is; the outcome is
  // deliver_reply() or fail_call(), possibly before this returns.
  void on_call(OutgoingCall& call) { requester_.on_call(call); }
  // The owner gives the Call up: it is forgotten, no more is heard of it. When it was on the wire,
  // its memory must be abandoned and its credit returns with its Reply.
  void on_cancel(OutgoingCall& call) { requester_.on_cancel(call); }

  // Responder. Events of a Call that has ended (with on_disconnect) are ignored.
  // An RDMA Read has ended; Reason::None: the data is there.
  void on_read_done(IncomingCall& call, Reason outcome) { responder_.on_read_done(call, outcome); }
  // The answer to deliver_call().
  void on_reply(IncomingCall& call, const ReplyShape& shape) { responder_.on_reply(call, shape); }
  // There will be no answer.
  void on_no_reply(IncomingCall& call) { responder_.on_no_reply(call); }
  // The same, where the connection is about to be closed.
  void on_failure(IncomingCall& call) noexcept { responder_.on_failure(call); }
  // The Call's chunks do not suit its arguments: ERR_CHUNK (RFC 8166 4.5.2).
  void on_refusal(IncomingCall& call, Reason reason) { responder_.on_refusal(call, reason); }
  // The Send of send_reply() has ended, well or not: the Call is over.
  void on_sent(IncomingCall& call) { responder_.on_sent(call); }
  // The connection's share of the byte budget has set aside what the oldest waiting Call needs.
  void on_budget() { responder_.on_budget(); }
  void on_quiet() { responder_.on_quiet(); }

  // The connection is gone. Calls of ours fail with `reason`; Calls of the peer that were not
  // delivered are forgotten, delivered ones run on and their Replies go nowhere.
  void on_disconnect(Reason reason);

  // From now on Calls of the peer are served (the reverse direction is enabled, RFC 8167 section
  // 6); their Receives are posted now. Only ever raises the number.
  void serve_calls(std::uint32_t credits);

  const Requester& requester() const { return requester_; }
  const Responder& responder() const { return responder_; }

 private:
  void on_fault(const HeaderFault& fault);
  void on_message(const ParsedHeader& parsed, Bytes payload,
                  std::optional<std::uint32_t> invalidated);

  const HeaderLimits header_limits_;
  Sink& sink_;
  Requester requester_;
  Responder responder_;
  // The header of the message that is being received, else one without chunks: most have none, and
  // to make and to end the room for chunks costs more than to decode a header without.
  std::optional<ParsedHeader> arrived_{std::in_place};
  bool closed_ = false;
};

}  // namespace stag::rpcrdma
