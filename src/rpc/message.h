// The messages that pass between the user API and a transport: whole RPC messages, in which the
// items that may travel apart are marked. The transport decides how they travel; neither side sees
// the other's types. Every object here belongs to one loop's thread unless stated otherwise.
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

// What a Call came by. endpoint::Transport has those of them that a program can choose; Memory is a
// Channel without a network, as tests have.
enum class TransportKind : std::uint8_t { Tcp, Udp, Rdma, Memory };

// The caller's memory for the data of one eligible result item. On RDMA the server writes straight
// into it; data that came inline is copied there as it is decoded. Several ResultBuffers of one id
// serve the items in their order. After the call the decoded item refers to this memory when the
// data is there, and to other memory when the data does not fit (rpc::copy_into() in rpc/client.h
// covers both cases). After a failed call its content is undefined.
struct ResultBuffer {
  xdr::ItemId item = 0;
  MutableBytes memory;  // exposed to the peer from the Call's transmission until call() returns
};

struct CallMessage;

// Makes a new message for each transmission of a Call: a security mechanism that counts messages
// must not send the same one twice.
class CallSigner {
 public:
  // Replaces message.stream by a stream for message.xid with a new header and verifier. The call
  // ends with the Reason of a failure. Throws nothing.
  virtual Result<Ok, Reason> sign(CallMessage& message) = 0;

 protected:
  ~CallSigner() = default;
};

// A Call on its way out. The CallMessage and all that it refers to live until Channel::call()
// returns; from then on the peer can reach no memory of the caller any more.
struct CallMessage {
  std::uint32_t xid = 0;  // from Channel::next_xid(); also the first word of `stream`
  xdr::Stream stream;     // the RPC message; watched items = the eligible arguments
  // Null: every transmission sends the same `stream`. Else begin_transmission() makes the stream.
  CallSigner* signer = nullptr;
  ReplyBound reply;  // of the whole Reply message, RPC header included
  // Eligible arguments and results of the procedure; the storage outlives the call.
  std::span<const xdr::ItemId> eligible_arguments;
  std::span<const xdr::ItemId> eligible_results;
  bool retry_short_reply = false;
  std::optional<TimePoint> deadline;  // by the clock of the Channel's loop; nullopt: waits for ever
  CancelToken cancel;
  std::span<const ResultBuffer> result_buffers;

  // The Channel calls this before each transmission of the Call, when no earlier transmission
  // refers to `stream` any more.
  Result<Ok, Reason> begin_transmission() {
    if (signer == nullptr) return Ok{};
    return signer->sign(*this);
  }
  // Makes another Call of this message, under the XID `next`.
  void use_xid(std::uint32_t next) {
    xid = next;
    if (signer == nullptr) stream.patch_u32(0, next);
  }
};

// The items of one received message that did not travel inline, for an xdr::Decoder. Only items
// with an eligible id may be reduced (RFC 8166 section 6.1); any other reduced item makes decoding
// fail.
class ReducedItems final : public xdr::ItemSource {
 public:
  // Sets the eligible items; none before. The storage outlives this object.
  void allow(std::span<const xdr::ItemId> eligible) { eligible_ = eligible; }

  // Sets the caller's memory that items which came inline are copied to. The storage outlives this
  // object.
  void place_in(std::span<const ResultBuffer> result_buffers) { result_buffers_ = result_buffers; }

  // Adds a Read chunk with the Position of its item (RFC 8166 section 3.4.5). `bytes` may end with
  // the item's XDR pad.
  void add(std::uint32_t position, Rope bytes);

  // Adds a Write chunk: the k-th chunk belongs to the k-th eligible result item. `bytes` is what
  // the Responder wrote. With a `place` (Pairing::ByIndex) the chunk is for that item only, and is
  // skipped when the results have another item instead.
  void add_written(Rope bytes, xdr::ItemId place = xdr::kNoItem);
  // Adds a Write chunk that was offered empty: its item stays inline (RFC 8166 section 4.3.2.3).
  void add_inline(xdr::ItemId place = xdr::kNoItem);

  bool empty() const { return entries_.empty(); }
  // Whether the Decoder has used every Read chunk. False after decoding: a Position named no item,
  // and the message is malformed (RFC 8166 section 3.4.5).
  bool all_taken() const;

  // The chunks, in the order they were added.
  std::size_t size() const { return entries_.size(); }
  std::uint32_t position(std::size_t index) const { return entries_[index].position; }
  const Rope& bytes(std::size_t index) const { return entries_[index].bytes; }

  std::optional<Rope> take(xdr::ItemId id, std::uint32_t position, std::uint32_t length) override;
  std::optional<Rope> take_body(xdr::ItemId id, std::uint32_t position) override;
  MutableBytes place(std::uint32_t length) override;
  void absent(xdr::ItemId id) override;
  // Copies the bytes that are borrowed, but for those in the memory of `result_buffers`. Throws
  // std::bad_alloc.
  void keep(std::span<const ResultBuffer> result_buffers);
  // Whether a chunk had another length than its item, or an item was reduced that may not be, or
  // was not reduced although its chunk says so.
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
  const ResultBuffer* next_result_buffer(xdr::ItemId id);
  Entry* read_at(std::uint32_t position);
  Entry* next_written(xdr::ItemId id);
  std::optional<Rope> take_read(Entry& entry, std::uint32_t length);
  std::optional<Rope> take_written(xdr::ItemId id, std::uint32_t length);
  std::optional<Rope> fail();

  InlineVector<Entry, 2> entries_;
  std::span<const xdr::ItemId> eligible_;
  std::span<const ResultBuffer> result_buffers_;
  std::uint64_t result_buffers_used_ = 0;        // bits
  const ResultBuffer* result_buffer_ = nullptr;  // of the item asked for last
  std::size_t next_ = 0;                         // of the Write chunks
  bool failed_ = false;
};

// A Reply as it came in: `payload` is the RPC message without the data of reduced items. The bytes
// may be borrowed from the transport and are then valid only until the caller suspends, so a Reply
// is decoded when it comes.
struct ReplyMessage {
  Buffer payload;
  ReducedItems items;

  // Copies what is borrowed from the transport, so that the Reply may be decoded later, and on
  // another thread. What lies in `result_buffers`, those of the Call, stays there. Throws
  // std::bad_alloc.
  void keep(std::span<const ResultBuffer> result_buffers) {
    if (!payload.owned()) payload = Buffer::copy_of(payload.bytes());
    items.keep(result_buffers);
  }
};

// Where a Call came from. One per connection, shared by the Calls that the connection carried; the
// Calls may outlive the connection.
struct Origin {
  Address peer;
  Address local;
  TransportKind transport = TransportKind::Tcp;
  std::string_view netid = "tcp";  // RFC 5665, RFC 8166 section 9: "tcp", "tcp6", "rdma", "rdma6"
  Loop* loop = nullptr;            // the connection's; handlers run on it
  // Null where the transport has no connections (UDP).
  std::shared_ptr<Connection> connection;
  // For Calls in the reverse direction on this connection (RFC 8167); expires with the connection.
  // Never set where the transport has no reverse direction.
  std::weak_ptr<Channel> reverse;
};

// The longest Reply that the transport can bring back for a Call: bytes of the RPC message, without
// the data that Write chunks take.
struct ReplyRoom {
  static constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};

  std::uint64_t inline_max = kUnlimited;  // in one inline message, record or datagram
  std::uint64_t chunk_max = 0;            // in the Call's Reply chunk (RFC 8166 3.5.3)
  std::uint32_t write_chunks = 0;         // of the Call

  std::uint64_t max() const { return inline_max > chunk_max ? inline_max : chunk_max; }
};

struct Authentication;  // rpc/authenticator.h

// A Call as it came in. `payload` is owned, or outlives the serve() Task.
struct IncomingCall {
  std::shared_ptr<const Origin> origin;
  Buffer payload;
  ReducedItems items;
  ReplyRoom reply_room;
  // The Service sets it when it gives no Reply and the peer must not wait for one: the transport
  // then ends the connection for this reason.
  Reason close = Reason::None;
  // Service::place() was asked for memory for the arguments, whether it gave any or not.
  bool placement_asked = false;
  // What was decided about the caller before serve(); null: nothing yet (Service::on_arrival).
  std::shared_ptr<Authentication> who{};
};

// The results of a Call before they get an RPC header; `results` is set when the status is SUCCESS.
// The stream watches the eligible items and owns all its bytes by reference, so that a ReplayCache
// may keep it and answer another transmission with other chunks.
struct CallResults {
  oncrpc::ReplyStatus status{};
  xdr::Stream results{};
};

// A Reply on its way out. `stream` watches the eligible results and owns all its bytes by
// reference.
struct OutgoingReply {
  xdr::Stream stream;
  std::span<const xdr::ItemId> eligible;  // results; the storage outlives the Server
  Pairing pairing = Pairing::Shift;
};

}  // namespace stag::rpc
