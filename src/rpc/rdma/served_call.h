// A Call of the peer in progress, from its message to the end of its Reply: to the core the record
// of its XID and chunks, to the Service the Call it executes; here the memory that its reduced
// arguments are read to, and the Task that makes the answer.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/buffer.h"
#include "rpc/message.h"
#include "rpc/service.h"
#include "rpcrdma/incoming_call.h"
#include "rpcrdma/shape.h"
#include "rpcrdma/sink.h"

namespace stag::rpc::rdma {

class ServedCall;

class ServedCallOwner {
 public:
  // The Service has answered; ServedCall::reply() says what. The Call may be released inside.
  virtual void on_served(ServedCall& call) noexcept = 0;

 protected:
  ~ServedCallOwner() = default;
};

class ServedCall final : public rpcrdma::IncomingCall, private TaskEnd {
 public:
  ServedCall(ServedCallOwner& owner, std::shared_ptr<const Origin> origin) : owner_(owner) {
    call_.origin = std::move(origin);
  }

  // The inline stream of a Call that has to wait until `service` serves it; owned.
  void defer(Service& service, Buffer payload) {
    call_.payload = std::move(payload);
    service.on_arrival(call_);
  }
  std::size_t deferred_bytes() const { return call_.payload.size(); }

  // Memory for the items the core is about to read, `length` bytes each: the program's, where
  // `service` has some for the only argument, else the transport's. False when there is none.
  bool make_room(Service& service, std::span<const rpcrdma::ArrivedItem> items);
  // The bytes of one item.
  MutableBytes buffer(std::uint32_t item) { return buffers_[item].exclusive(); }
  // Where `length` bytes of it belong that are read to `offset`; the program's memory has no room
  // for the item's pad.
  MutableBytes sink(std::uint32_t item, std::uint32_t offset, std::uint32_t length);

  // Bytes of an inline stream that the record itself has room for: most Calls are that short.
  static constexpr std::size_t kRoomForStream = 256;
  // The same bytes as long as the Call is in progress; at most kRoomForStream.
  Buffer keep_stream(Bytes stream) {
    std::copy(stream.begin(), stream.end(), stream_.begin());
    return Buffer::borrow(Bytes(stream_).first(stream.size()));
  }

  // Has `service` execute the Call that has arrived; `payload` is its inline stream when it was not
  // deferred. Throws what service.serve() throws before there is a Task.
  void serve(Service& service, const rpcrdma::CallArrival& arrival, Buffer payload);
  bool in_service() const { return static_cast<bool>(serving_); }
  // Lives as long as the Call is in service.
  void keep(std::shared_ptr<void> alive) { alive_ = std::move(alive); }

  // Why the connection is to end, when there is no answer; None: it goes on.
  Reason close() const { return call_.close; }
  // The answer; throws what the Service threw. It stays until release().
  const std::optional<OutgoingReply>& reply() { return serving_.result(); }
  // The same described to the core; there is one.
  const rpcrdma::ReplyShape& shape();
  // For each of the shape's items at these indices, where it stands among those of the stream.
  InlineVector<std::uint32_t, 2> sources(const InlineVector<std::uint32_t, 2>& items) const;

  // The data of the shape's item at this index.
  Rope item_bytes(std::uint32_t item);

  void release();

 private:
  bool place(Service& service, const rpcrdma::ArrivedItem& item);
  void on_task_end() noexcept override;
  void forget_buffers();

  ServedCallOwner& owner_;
  rpc::IncomingCall call_;
  std::array<std::byte, kRoomForStream> stream_;
  // Exclusive until serve(). While Reads are outstanding none is let go: the core releases the Call
  // when the last of them has ended.
  InlineVector<Buffer, 2> buffers_;
  std::array<std::byte, 4> pad_;
  Task<std::optional<OutgoingReply>> serving_;
  std::shared_ptr<void> alive_;
  rpcrdma::ReplyShape shape_;
};

}  // namespace stag::rpc::rdma
