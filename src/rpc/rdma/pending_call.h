// A Call of ours on its way: what the core knows of it, the memory it exposes and who waits for it.
// Belongs to the coroutine that makes the call, which ends only when nothing of it is exposed any
// more.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/buffer.h"
#include "base/completion.h"
#include "rpc/message.h"
#include "rpc/rdma/options.h"
#include "rpc/rdma/registrations.h"
#include "rpcrdma/requester.h"
#include "rpcrdma/sink.h"

namespace stag::rpc::rdma {

// How an attempt on one connection ended.
struct CallEnd {
  CallEnd() {}  // like rpcrdma::ParsedHeader's

  Reason reason = Reason::None;  // None: `reply` is there
  bool connection_lost = false;  // so another connection may do better
  ReplyMessage reply;
};

// What a Call exposes.
struct ExposedMemory {
  struct ForResult {
    MutableBytes memory;
    Block block;  // when it is not the caller's
  };
  bool owned() const;

  InlineVector<ForResult, 2> results;  // of the Write chunks
  Block reply;                         // of the Reply chunk
  bool holds_reply = false;            // it was there
  Rope position_zero;
  InlineVector<Rope, 2> arguments;  // of the other Read chunks
};

class PendingCall : public rpcrdma::OutgoingCall {
 public:
  // `message` outlives this, or its use for another call.
  explicit PendingCall(CallMessage& message) : message_(&message) {}
  // renew() forgets how the call before ended.
  void use_for(CallMessage& message) {
    message_ = &message;
    transmitted = false;
  }

  // Before each attempt.
  void renew() {
    end.reset();
    done_.emplace();
  }
  // Describes the message to the core, for a connection with these limits.
  void prepare(const fabric::Parameters& parameters, const TransportOptions& options);

  // The actions of the core on this Call.
  Result<rpcrdma::ExposedChunks, Reason> expose(fabric::Connection& connection);
  // The stream that goes inline: as views, and as bytes that stay.
  void add_inline_stream(xdr::Stream::Parts& to) const;
  Rope inline_stream() const;
  // Before the peer is cut off: whether it has written what its Reply says, as far as the fabric
  // knows. What it has not is of an earlier call, perhaps another user's.
  Reason check_written(const fabric::Connection& connection, const rpcrdma::ReplyArrival& arrival);
  // Borrows what came inline.
  void collect(const rpcrdma::ReplyArrival& arrival, ReplyMessage& reply);
  // Once the memory is free: whether the Reply, where it lay in the Reply chunk, is one to this
  // Call.
  bool reply_is_own() const;
  // The outcome waits longer than what was borrowed lives. Without memory for that it is
  // OutOfMemory.
  void keep_reply();
  void count(TransferStats& stats, const rpcrdma::ReplyArrival& arrival) const;

  CallMessage& message() { return *message_; }
  Registrations& registrations() { return registrations_; }
  // Forgets the memory of the attempt; nothing of it may be exposed.
  void release();
  // Whether all that is exposed can outlive the call: none of it is the caller's.
  bool owns_memory() const { return memory_.owned(); }
  // For who keeps it exposed when the call has been given up.
  ExposedMemory take_memory() { return std::exchange(memory_, {}); }

  // Resolves once an attempt has ended and its memory is free; `end` says how.
  Completion<Ok>& done() { return *done_; }
  // There since the attempt has ended, with registrations still held or not.
  std::optional<CallEnd> end;
  PendingCall* next_settling = nullptr;  // of SettlingCalls

 private:
  void describe_call();
  void describe_reply();
  InlineVector<std::uint32_t, 2> reduced_items() const;
  ExposedMemory::ForResult result_memory(std::size_t result, std::uint32_t length,
                                         InlineVector<bool, 4>& used) const;
  Rope gathered(Rope bytes, std::uint32_t most_segments) const;
  // How many segments gathered() makes of it where `max_segments_` are the most.
  std::uint32_t segments_when_gathered(const Rope& bytes) const;
  Rope position_zero(std::span<const std::uint32_t> moved) const;
  // What the Read chunk of the item at this index of the stream holds.
  Rope chunk_of(std::size_t source) const;

  CallMessage* message_;
  Registrations registrations_;
  ExposedMemory memory_;
  // Of the Reply chunk, that the peer has written, where the fabric knows.
  std::uint64_t reply_written_ = 0;
  std::uint32_t max_registration_ = 0;
  std::uint32_t max_segments_ = 0;
  bool pad_read_chunks_ = false;
  bool uses_result_buffers_ = true;
  std::optional<Completion<Ok>> done_;
};

}  // namespace stag::rpc::rdma
