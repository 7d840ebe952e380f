// The calls in progress of one client and their Replies, matched by XID. It outlives streams: a
// call waits while there is none and is sent on the next one, once each (RFC 5531 section 9:
// retransmissions keep their XID).
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/completion.h"
#include "rpc/channel.h"
#include "rpc/tcp/stream.h"

namespace stag::rpc::tcp {

class Requester {
 public:
  class Owner {
   public:
    // A call waits and there is no stream.
    virtual void on_stream_wanted() = 0;
    // `call` was sent on the stream.
    virtual void on_call_sent(const xdr::Stream& call) noexcept = 0;

   protected:
    ~Owner() = default;
  };

  // `turn` is that of its Calls among the records of a stream.
  Requester(Loop& loop, Owner& owner, std::string where,
            RecordStream::Turn turn = RecordStream::Turn::Last)
      : loop_(loop), owner_(owner), where_(std::move(where)), turn_(turn) {}
  ~Requester() { STAG_CHECK(active_ == 0); }
  Requester(const Requester&) = delete;
  Requester& operator=(const Requester&) = delete;

  Task<Result<ReplyMessage, CallError>> call(CallMessage& message);

  // Sends every call in progress on `stream`.
  void attach(std::shared_ptr<RecordStream> stream);
  // The stream is gone because of `reason`; calls wait for the next one.
  void detach(Reason reason);
  // Ends every call in progress with `reason`, but none that is made meanwhile. Asks for no memory.
  void end_all(Reason reason) noexcept;
  // The same, and each that comes later.
  void shut(Reason reason) noexcept;
  // Whether a call in progress is so long that it may be what the peer ended the last stream for.
  bool has_long_calls() const noexcept;
  // The peer ended it. Whether it was the second one of such a call, which end_refused() ends.
  bool count_refusal() noexcept;
  // Ends such calls with `reason`. Asks for no memory.
  void end_refused(Reason reason) noexcept;

  // Whether a call in progress has this XID.
  bool waits_for(std::uint32_t xid) const { return find(xid) != nullptr; }
  // A record of type REPLY.
  void on_reply(Buffer record);

  // Calls whose coroutine has not returned.
  std::size_t active() const { return active_; }
  // Calls that wait for their Reply.
  std::size_t waiting() const { return waiting_; }
  const std::string& where() const { return where_; }

 private:
  struct Pending;
  static constexpr std::size_t kBuckets = 256;

  void insert(Pending& pending);
  bool remove(Pending& pending);
  Pending* find(std::uint32_t xid) const;
  void transmit(Pending& pending);
  void end(Pending& pending, Result<ReplyMessage, CallError> result);
  void expire(Pending& pending);
  bool is_long_call(const Pending& pending) const noexcept;
  template <class Which>
  void end_where(Which which, Reason reason) noexcept;
  CallError failed(Reason reason, const Pending& pending) const noexcept;

  Loop& loop_;
  Owner& owner_;
  std::string where_;
  const RecordStream::Turn turn_;
  std::shared_ptr<RecordStream> stream_;
  std::uint64_t streams_ = 0;                 // there have been
  std::array<Pending*, kBuckets> buckets_{};  // chains by XID
  std::uint64_t calls_ = 0;                   // there have been
  std::size_t waiting_ = 0;
  std::size_t active_ = 0;
  Reason lost_ = Reason::None;  // why there is no stream
  Reason shut_ = Reason::None;
};

}  // namespace stag::rpc::tcp
