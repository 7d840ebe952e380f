// The Requester role of an endpoint: sends Calls within the credits granted and matches Replies to
// them (RFC 8166 3.3.1, 4.2.1). Used through Connection.
#pragma once

#include <cstdint>
#include <optional>

#include "base/key_table.h"
#include "rpcrdma/header.h"
#include "rpcrdma/plan.h"
#include "rpcrdma/shape.h"
#include "rpcrdma/sink.h"

namespace stag::rpcrdma {

// A Call of ours: belongs to its owner, who derives from it what else it needs to know, and is
// linked into the core from on_call() to deliver_reply(), fail_call() or on_cancel().
class OutgoingCall {
 public:
  OutgoingCall() = default;
  ~OutgoingCall() { STAG_CHECK(state_ == State::Idle); }
  OutgoingCall(const OutgoingCall&) = delete;
  OutgoingCall& operator=(const OutgoingCall&) = delete;

  // Set before on_call(). XIDs are unique among the calls in progress.
  std::uint32_t xid = 0;
  CallShape shape;
  ReplyBound bound;
  // A health check: it may use the credit that other Calls leave free (RFC 8267 6.7.2).
  bool probe = false;

  // Valid from expose()/send_call() on, and still in deliver_reply() and fail_call().
  const CallPlan& plan() const { return plan_; }
  // With the chunks that were offered.
  const Header& header() const { return header_; }
  // Whether it is on the wire.
  bool sent() const { return state_ == State::Sent; }
  // Whether it ever was, so that the peer may have executed it. Of its owner, who clears it.
  bool transmitted = false;

 private:
  friend class Requester;
  enum class State : std::uint8_t { Idle, Queued, Sent };

  State state_ = State::Idle;
  CallPlan plan_;
  Header header_;  // as sent
  OutgoingCall* next_ = nullptr;
  OutgoingCall* previous_ = nullptr;
};

struct RequesterSettings {
  std::uint32_t credits = 64;  // requested in every Call
  // Leave one credit to probes when more than one is granted (RFC 8267 6.7.2).
  bool reserve_probe_credit = false;
  bool chunks = true;  // false: a Call that needs chunks fails (RFC 8167 5.3)
  CallLimits limits;
  bool may_be_invalidated = false;
};

class Requester {
 public:
  Requester(const RequesterSettings& settings, Sink& sink);
  ~Requester();
  Requester(const Requester&) = delete;
  Requester& operator=(const Requester&) = delete;

  void on_call(OutgoingCall& call);
  void on_cancel(OutgoingCall& call);
  void on_reply(const ParsedHeader& parsed, Bytes payload,
                std::optional<std::uint32_t> invalidated);
  void on_error(const ErrorMessage& error);
  void on_disconnect(Reason reason);

  // A Call with this XID is on the wire and has had no Reply, cancelled ones included.
  bool awaits(std::uint32_t xid) const { return in_flight_.contains(xid); }
  // Whether the peer may invalidate this handle with a Reply to this XID: we offered it, and no
  // other Call in progress depends on it (RFC 8797 4.1).
  bool may_invalidate(std::uint32_t xid, std::uint32_t handle) const;
  // Calls on the wire without a Reply, cancelled ones included: each holds a credit.
  std::uint32_t in_flight() const { return static_cast<std::uint32_t>(in_flight_.size()); }
  // Requested in every Call.
  std::uint32_t credits() const { return settings_.credits; }
  const CallLimits& limits() const { return settings_.limits; }
  bool sends_chunks() const { return settings_.chunks; }
  // Calls that may be on the wire now: 1 before the first Reply (RFC 8166 3.3.3).
  std::uint32_t credit_limit() const;

 private:
  void send_ready();
  void send_first(OutgoingCall& call);
  bool has_credit(const OutgoingCall& call) const;
  OutgoingCall* next_ready();
  void send(OutgoingCall& call);
  void transmit(OutgoingCall& call);
  void fail(OutgoingCall& call, const CallFailure& failure);
  void unlink(OutgoingCall& call);
  bool complete(OutgoingCall* call, std::uint32_t credits);
  void offer(const OutgoingCall& call);
  void retire(OutgoingCall& call);
  OutgoingCall* take_youngest();
  void grant(std::uint32_t credits);

  const RequesterSettings settings_;
  Sink& sink_;
  // Calls on the wire by XID. Null: cancelled; it keeps its XID and its credit until its Reply
  // arrives.
  KeyTable<OutgoingCall*> in_flight_;
  KeyTable<std::uint32_t> offered_;  // how many segments of the others name a handle
  OutgoingCall* first_ = nullptr;    // waiting for credit, probes first, then oldest first
  OutgoingCall* last_ = nullptr;
  std::uint32_t granted_ = 1;
  bool open_ = true;
  bool sending_ = false;
  Reason closed_ = Reason::None;
};

}  // namespace stag::rpcrdma
