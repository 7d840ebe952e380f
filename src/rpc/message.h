// What passes between the user API and a transport: whole RPC messages, with the items that may
// travel apart marked. The transport decides how they travel; neither side sees the other's types.
//
// Positions count bytes of the complete, unreduced RPC message, whose first byte is the XID
// (RFC 8166 3.4.5).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/address.h"
#include "base/buffer.h"
#include "base/cancel.h"
#include "base/inline_vector.h"
#include "base/loop.h"
#include "base/reason.h"
#include "base/result.h"
#include "base/rope.h"
#include "oncrpc/message.h"
#include "rpc/binding.h"
#include "rpc/connection.h"
#include "xdr/decoder.h"
#include "xdr/stream.h"

namespace stag::rpc {

class Channel;

enum class TransportKind : std::uint8_t { Tcp, Udp, Rdma, Memory };

// Caller memory for the data of one eligible result item: an RDMA transport has the server write
// straight into it, and data that came inline is copied there as it is decoded. Several sinks for
// one id are used in the order of the items. After the call the decoded item refers to this memory
// when the data went there, and elsewhere when it does not fit (rpc::copy_into() in rpc/client.h
// settles both). What is in it after a call that failed is undefined.
struct ResultBuffer {
  xdr::ItemId item = 0;
  MutableBytes memory;
};

struct CallMessage;

// Makes the message of each transmission of a Call anew: where a mechanism counts messages, one
// that is sent twice must not be the same twice.
class CallSigner {
 public:
  // Replaces message.stream by one for message.xid, whose header and verifier are new. On failure
  // the call ends. Throws nothing.
  virtual Result<Ok, Reason> sign(CallMessage& message) = 0;

 protected:
  ~CallSigner() = default;
};

// A Call on its way out. It and all it refers to live until Channel::call() returns, which is also
// when memory exposed to the peer is the caller's alone again (design: call() ends only after
// Free).
struct CallMessage {
  std::uint32_t xid = 0;  // from Channel::next_xid(); also the first word of `stream`
  xdr::Stream stream;     // the RPC message; watched items = the eligible arguments
  // Null: `stream` is the same whenever it is sent. Else there is none before begin_transmission().
  CallSigner* signer = nullptr;
  ReplyBound reply;  // of the whole Reply message, RPC header included
  // Eligible arguments and results of the procedure; the storage outlives the call.
  std::span<const xdr::ItemId> eligible_arguments;
  std::span<const xdr::ItemId> eligible_results;
  bool retry_short_reply = false;
  std::optional<TimePoint> deadline;  // none: waits for ever; on the channel's loop clock
  CancelToken cancel;
  std::span<const ResultBuffer> sinks;

  // By the Channel, before it sends the Call and before it sends it again; nothing that was sent
  // before may refer to `stream`.
  Result<Ok, Reason> begin_transmission() {
    if (signer == nullptr) return Ok{};
    return signer->sign(*this);
  }
  // From here on it is another Call.
  void use_xid(std::uint32_t next) {
    xid = next;
    if (signer == nullptr) stream.patch_u32(0, next);
  }
};

// The items of one received message that did not travel inline, for xdr::Decoder. Only items with
// an eligible id may have moved (RFC 8166 6.1); any other that did makes decoding fail.
class ReducedItems final : public xdr::ItemSource {
 public:
  // Nothing is eligible until this is said. The storage outlives this object.
  void allow(std::span<const xdr::ItemId> eligible) { eligible_ = eligible; }

  // Items that came inline are wanted in this memory, of the caller.
  void place_in(std::span<const ResultBuffer> sinks) { sinks_ = sinks; }

  // Read chunks: each names the position of its item (RFC 8166 3.4.5). `bytes` may end with the
  // item's XDR pad.
  void add(std::uint32_t position, Rope bytes);

  // Write chunks: the k-th chunk belongs to the k-th eligible result item. `bytes` is what the
  // Responder wrote. With a `place` (Pairing::ByIndex) the chunk is for that item only, and skipped
  // when another comes instead.
  void add_written(Rope bytes, xdr::ItemId place = xdr::kNoItem);
  // A chunk that was offered empty: its item stays inline (RFC 8166 4.3.2.3).
  void add_inline(xdr::ItemId place = xdr::kNoItem);

  bool empty() const { return entries_.empty(); }
  // Every Read chunk was asked for. False after decoding: a position named no item, the message is
  // malformed (RFC 8166 3.4.5).
  bool all_taken() const;

  // The chunks, in the order they were added.
  std::size_t size() const { return entries_.size(); }
  std::uint32_t position(std::size_t index) const { return entries_[index].position; }
  const Rope& bytes(std::size_t index) const { return entries_[index].bytes; }

  std::optional<Rope> take(xdr::ItemId id, std::uint32_t position, std::uint32_t length) override;
  std::optional<Rope> take_body(xdr::ItemId id, std::uint32_t position) override;
  MutableBytes place(std::uint32_t length) override;
  void absent(xdr::ItemId id) override;
  // A chunk met an item of another length, one that may not move, or one that should have moved.
  bool failed() const override { return failed_; }

 private:
  enum class Kind : std::uint8_t { Read, Written, Inline };
  struct Entry {
    Kind kind = Kind::Read;
    std::uint32_t position = 0;  // of a Read chunk
    xdr::ItemId place = xdr::kNoItem;
    Rope bytes{};
    bool taken = false;
  };
  bool eligible(xdr::ItemId id) const;
  const ResultBuffer* next_sink(xdr::ItemId id);
  Entry* read_at(std::uint32_t position);
  Entry* next_written(xdr::ItemId id);
  std::optional<Rope> take_read(Entry& entry, std::uint32_t length);
  std::optional<Rope> take_written(xdr::ItemId id, std::uint32_t length);
  std::optional<Rope> fail();

  InlineVector<Entry, 2> entries_;
  std::span<const xdr::ItemId> eligible_;
  std::span<const ResultBuffer> sinks_;
  std::uint64_t sinks_used_ = 0;        // bits
  const ResultBuffer* sink_ = nullptr;  // of the item asked for last
  std::size_t next_ = 0;                // of the Write chunks
  bool failed_ = false;
};

// A Reply as it came in: `payload` is the RPC message without the data of reduced items. It may be
// borrowed from the transport, until the caller suspends: a Reply is decoded when it comes.
struct ReplyMessage {
  Buffer payload;
  ReducedItems items;
};

// Where a Call came from; one per connection, shared with the Calls it carried, which may outlive
// it.
struct Origin {
  Address peer;
  Address local;
  TransportKind transport = TransportKind::Tcp;
  std::string_view netid = "tcp";  // RFC 5665, RFC 8166 section 9: "tcp", "tcp6", "rdma", "rdma6"
  Loop* loop = nullptr;            // the connection's; handlers run on it
  // Null where the transport has none (UDP).
  std::shared_ptr<Connection> connection;
  // Calls in the reverse direction on this connection; expires with it. Never set when the
  // transport has no such direction.
  std::weak_ptr<Channel> reverse;
};

// The longest Reply that the transport can bring back for a Call: bytes of the RPC message, without
// the data that Write chunks take.
struct ReplyRoom {
  static constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};

  std::uint64_t inline_max = kUnlimited;  // in a message of its own, record or datagram
  std::uint64_t chunk_max = 0;            // in the Call's Reply chunk (RFC 8166 3.5.3)

  std::uint64_t max() const { return inline_max > chunk_max ? inline_max : chunk_max; }
};

// A Call as it came in. `payload` is owned, or outlives the serve() Task.
struct IncomingCall {
  std::shared_ptr<const Origin> origin;
  Buffer payload;
  ReducedItems items;
  ReplyRoom reply_room;
  // Set by the Service when it gives no answer and the peer must not wait for one: why the
  // transport is to end the connection.
  Reason close = Reason::None;
};

// What a Call came to, before it is put behind an RPC header: `results` when the status is SUCCESS.
// They watch the eligible ones and own all their bytes by reference, so they may be kept for
// replays, and answer another Call with other chunks.
struct CallResults {
  oncrpc::ReplyStatus status{};
  xdr::Stream results{};
};

// A Reply on its way out. `stream` watches the eligible results and owns (by reference) all its
// bytes, so it may be kept for replays and sent again against other chunks.
struct OutgoingReply {
  xdr::Stream stream;
  std::span<const xdr::ItemId> eligible;  // results; the storage outlives the Server
  Pairing pairing = Pairing::Shift;
};

}  // namespace stag::rpc
