// Observer: the interface to which a Server and its transports report what they do, so that it can
// be counted, logged and traced (docs/decisions/0053-what-is-observed.md).
//
// Thread: the loop of the connection or the Call; several at a time. The arguments of a function
// live until it returns. An Observer never waits, and makes nothing fail.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/worker_time.h"
#include "rpc/message.h"

namespace stag::rpc {

// A Call whose header was read.
struct BegunCall {
  const IncomingCall& call;
  const oncrpc::CallHeader& header;
};

// A Call that has ended.
struct EndedCall {
  explicit EndedCall(const IncomingCall& of) : call(of) {}

  const IncomingCall& call;
  // nullopt: the header was not readable.
  std::optional<oncrpc::CallHeader> header;
  TimePoint began{};  // by the loop's clock, when the Server got it
  // The arguments as the procedure got them, where those of the message are transformed (RFC 2203
  // section 5.3.2); empty: they are not, or could not be read.
  Buffer plain_arguments;
  // Of what the Call had done by Executors; nullopt: nobody followed it when it began.
  std::optional<WorkerTime> worker_time;
  // Whether there is a Reply. If not, the members below have no meaning.
  bool answered = false;
  oncrpc::ReplyStatus status{};
  // The first word of the results, before they were protected; in NFS it is a status. nullopt: the
  // Reply has no results.
  std::optional<std::uint32_t> first_result;
  // The results, before they were protected, as far as nothing stands among them by reference.
  Bytes results{};
  std::uint64_t reply_bytes = 0;  // of the whole RPC message
};

// How a Call came by RPC-over-RDMA, before it is served.
struct ArrivedCall {
  std::uint32_t xid = 0;
  std::uint64_t inline_bytes = 0;  // of the RPC message
  std::uint64_t read_bytes = 0;    // that were fetched: of arguments, or of the whole message
  std::uint32_t reads = 0;         // arguments that were fetched, or the message
  // Of `read_bytes`, those of a message that did not come inline (RFC 8166 4.3.3: Position Zero).
  std::uint64_t position_zero_bytes = 0;
};

// How a Reply left by RPC-over-RDMA.
struct SentReply {
  std::uint32_t xid = 0;
  std::uint32_t credits = 0;            // that it grants
  std::uint64_t inline_bytes = 0;       // of the RPC message
  std::uint64_t write_chunk_bytes = 0;  // of results that were placed by themselves, with their pad
  std::uint64_t reply_chunk_bytes = 0;  // of a message that did not go inline
  std::uint32_t writes = 0;             // RDMA Writes for both
};

// A Call as it came by TCP or UDP: one record, or one datagram.
struct WholeCall {
  std::uint32_t xid = 0;
  std::uint64_t bytes = 0;

  static WholeCall of(Bytes message) {
    return {load_be<std::uint32_t>(message.data()), message.size()};
  }
};

// How a Reply left in the same form.
struct WholeReply {
  std::uint32_t xid = 0;
  std::uint64_t bytes = 0;
  bool sent = false;  // false: the connection had ended, or the socket did not take it

  // The header of a Reply is in one piece.
  static WholeReply of(const Rope& message, bool sent) {
    return {load_be<std::uint32_t>(message.pieces().front().data()), message.size(), sent};
  }
};

class Observer {
 public:
  // Whether an observer follows Calls. What only an observer that follows wants to know is neither
  // made up nor told without one: then a Call costs looks at a number that never changes. Any
  // thread.
  bool traces() const noexcept { return traces_.load(std::memory_order_relaxed); }

  // A connection is up. All its Calls have this `origin`. Not called on UDP.
  virtual void on_connected(const Origin& origin) noexcept = 0;
  // Once for each on_connected(). Calls of the connection may end later.
  virtual void on_disconnected(const Origin& origin, Reason reason) noexcept = 0;
  // A Call came by RPC-over-RDMA, before the Server has read its header.
  virtual void on_call_arrived(const Origin& origin, const ArrivedCall& call) noexcept = 0;
  // The header of a Call was read. It may still be refused, or answered from the replay cache.
  virtual void on_call_begun(const BegunCall& call) noexcept = 0;
  // A Call has ended, with a Reply or without, whether it had begun or not.
  virtual void on_call_ended(const EndedCall& call) noexcept = 0;
  // A Reply was handed to the RDMA connection.
  virtual void on_reply_sent(const Origin& origin, const SentReply& reply) noexcept = 0;
  // While traces(): a Call came whole by TCP or UDP, before it is served.
  virtual void on_whole_call(const Origin& /*origin*/, const WholeCall& /*call*/) noexcept {}
  // Where traces() when the Reply was made: the socket has taken the whole Reply, or will not.
  virtual void on_whole_reply(const Origin& /*origin*/, const WholeReply& /*reply*/) noexcept {}

 protected:
  ~Observer() = default;
  // Of Calls that begin from now on; of no others at first. Any thread.
  void trace_calls(bool wanted) noexcept { traces_.store(wanted, std::memory_order_relaxed); }

 private:
  std::atomic<bool> traces_{false};
};

// `observer` if it traces, else null, as where there is none.
inline Observer* tracing(Observer* observer) noexcept {
  return observer != nullptr && observer->traces() ? observer : nullptr;
}

}  // namespace stag::rpc
