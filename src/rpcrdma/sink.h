// What the core asks its owner to do. Actions name memory by call, item, offset and length; the
// owner knows the bytes. They are to be performed in the order given.
//
// From inside a Sink function the owner may call back into the Connection only where it says so.
// Nothing passed by reference or span outlives the call.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/inline_vector.h"
#include "base/reason.h"
#include "base/result.h"
#include "rpcrdma/header.h"
#include "rpcrdma/incoming_call.h"
#include "rpcrdma/plan.h"

namespace stag::rpcrdma {

class OutgoingCall;

// The memory of a CallPlan as it was registered. The lengths of each chunk's segments add up to
// what the plan says, and there are no more segments than the shape and bound announced.
struct ExposedChunks {
  Segments position_zero;               // CallPlan::form Long: readable, stream_length bytes
  InlineVector<Segments, 2> arguments;  // for each CallPlan::reduced: readable
  InlineVector<Segments, 2> results;    // for each CallPlan::write_chunks: writable; 0 bytes: none
  Segments reply;                       // CallPlan::reply_chunk: writable
};

// The Reply to a Call of ours.
struct ReplyArrival {
  Bytes payload;            // the inline stream; empty when it lies in the Reply chunk
  bool long_reply = false;  // the stream lies at the start of the Reply chunk
  // Bytes the Responder says it put there. The stream may be shorter: some count what they put into
  // Write chunks as well.
  std::uint32_t reply_chunk_length = 0;
  InlineVector<std::uint32_t, 2> written;    // bytes in each of CallPlan::write_chunks, 0: unused
  std::optional<std::uint32_t> invalidated;  // this handle of ours is revoked already
};

// Why a Call of ours ended without a Reply.
struct CallFailure {
  Reason reason = Reason::None;
  // With Reason::RdmaPeerRefusedVersion: what the peer supports.
  std::uint32_t lowest_version = 0, highest_version = 0;
};

// A Call of the peer, ready to be executed.
struct CallArrival {
  std::uint32_t xid = 0;
  // The inline stream less reduced items. Empty when defer_call() gave it before, and for a Long
  // Call, whose stream is item 0.
  Bytes payload;
  bool deferred = false;
  bool long_call = false;
  std::span<const ArrivedItem> items;  // by Position; all Reads are done
  std::uint32_t inline_reply_max = 0;  // bytes of reply stream that can go inline
  std::uint64_t reply_chunk_max = 0;   // bytes of reply stream the Reply chunk can take
  std::uint32_t write_chunks = 0;      // for eligible results, in their order
};

class Sink {
 public:
  // Connection.
  // As many more messages may arrive (Receives to post, before anything else that follows).
  virtual void post_receives(std::uint32_t count) = 0;
  // A message was dropped, silently on the wire.
  virtual void drop(Reason reason) = 0;
  // An RDMA_ERROR for the peer.
  virtual void send_error(Buffer message, Reason reason) = 0;
  // End the connection; on_disconnect() is expected in return.
  virtual void close(Reason reason) = 0;

  // Requester.
  // Registers the memory of call.plan(). On failure nothing stays registered and the Call ends with
  // fail_call(). Asked only when CallPlan::needs_memory(), right before send_call().
  virtual Result<ExposedChunks, Reason> expose(OutgoingCall& call) = 0;
  // Send: `header`, and the stream less call.plan().reduced behind it when the form is Inline.
  virtual void send_call(OutgoingCall& call, Bytes header) = 0;
  // The Call is over and the core has forgotten it. Its memory must be cut off from the peer before
  // anybody reads it (RFC 8166 4.4.1). May call back.
  virtual void deliver_reply(OutgoingCall& call, const ReplyArrival& reply) = 0;
  // The same without a Reply. May call back.
  virtual void fail_call(OutgoingCall& call, const CallFailure& failure) = 0;

  // Responder.
  // A record for Calls of the peer, which is the Responder's from then on.
  virtual std::unique_ptr<IncomingCall> make_call() = 0;
  // Whether a Call with this inline stream is worth reading its arguments. When not it takes no
  // bytes and is delivered without them, to be refused.
  virtual bool is_worth_reading(Bytes) const { return true; }
  // Bytes of the longest Reply to a Call with this inline stream, or more.
  virtual std::uint64_t reply_max(Bytes) const { return ~std::uint64_t{0}; }
  // The Call is not delivered at once: keep a copy of its inline stream.
  virtual void defer_call(IncomingCall& call, Bytes payload) = 0;
  // Provide memory for each item; Reads follow, on_read_done() for each. False when there is none:
  // the Call is refused.
  virtual bool start_reads(IncomingCall& call, std::span<const ArrivedItem> items) = 0;
  // RDMA Read from the peer's memory to byte `offset` of `item`.
  virtual void read(IncomingCall& call, std::uint32_t item, std::uint32_t offset,
                    const Segment& from) = 0;
  // The bytes read into item 0 of a Long Call.
  virtual Bytes long_call(IncomingCall& call) = 0;
  // Execute it; on_reply() or on_no_reply() answers. May call back.
  virtual void deliver_call(IncomingCall& call, const CallArrival& arrival) = 0;
  // RDMA Writes as plan.writes says, then the Send: `header`, and the stream less plan.reduced
  // behind it when the form is Inline; with `invalidate` as Send With Invalidate. on_sent() when it
  // is gone.
  virtual void send_reply(IncomingCall& call, Bytes header, const ReplyPlan& plan,
                          std::optional<std::uint32_t> invalidate) = 0;
  // The Call ended without a send_reply(): it was refused or will not be executed. Its memory is
  // not in use any more.
  virtual void forget_call(IncomingCall& call, Reason reason) = 0;

 protected:
  ~Sink() = default;
};

}  // namespace stag::rpcrdma
