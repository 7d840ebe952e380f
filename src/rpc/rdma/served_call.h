// A Call of the peer in progress: where its reduced arguments are read to, and the Reply while it
// leaves.
#pragma once

#include <cstdint>
#include <span>

#include "base/buffer.h"
#include "rpc/message.h"
#include "rpc/service.h"
#include "rpcrdma/plan.h"
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

class ServedCall final : private TaskEnd {
 public:
  // Has `service` execute the Call that has arrived, under this name. Throws what service.serve()
  // throws before there is a Task.
  void serve(Service& service, ServedCallOwner& owner, rpcrdma::IncomingCall id);
  bool in_service() const { return static_cast<bool>(serving_); }
  // Lives as long as the Call is in service.
  void keep(std::shared_ptr<void> alive) { alive_ = std::move(alive); }
  rpcrdma::IncomingCall id() const { return id_; }
  // Throws what the Service threw.
  const std::optional<OutgoingReply>& reply() { return serving_.result(); }

  // Owned.
  void hold(Buffer payload) { held_ = std::move(payload); }

  // Memory for the items the core is about to read, `length` bytes each. False when there is none.
  bool make_room(std::span<const rpcrdma::ArrivedItem> items);
  // The bytes of one item.
  MutableBytes room(std::uint32_t item);

  // The Call as the Service sees it, until its answer; has the read memory. `payload` is the inline
  // stream of a Call that was not held.
  void arrival(const rpcrdma::CallArrival& arrival, Buffer payload,
               const std::shared_ptr<Origin>& origin);

  // The answer, described to the core; it stays until release().
  const rpcrdma::ReplyShape& answer(const OutgoingReply& reply);
  // The bytes of one RDMA Write. The core places items before the rest of the stream.
  Rope placed(const rpcrdma::Placement& placement);
  // The stream that goes inline where it lies in one piece of small bytes; else empty.
  Bytes plain_stream(const rpcrdma::ReplyPlan& plan) const;
  Rope inline_stream(const rpcrdma::ReplyPlan& plan) const;

  void release();

 private:
  struct Room {
    Block block;
    std::uint32_t length = 0;
  };
  void on_task_end() noexcept override;
  Rope stream_without_reduced() const;
  InlineVector<std::uint32_t, 2> moved(const rpcrdma::ReplyPlan& plan) const;

  Buffer held_;
  IncomingCall call_;
  Task<std::optional<OutgoingReply>> serving_;
  ServedCallOwner* owner_ = nullptr;
  rpcrdma::IncomingCall id_;
  std::shared_ptr<void> alive_;
  InlineVector<Room, 2> rooms_;
  const xdr::Stream* stream_ = nullptr;  // of the answer
  rpcrdma::ReplyShape shape_;
  InlineVector<std::uint32_t, 2> reduced_;  // indices into stream_.items(), ascending
};

}  // namespace stag::rpc::rdma
