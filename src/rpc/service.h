// Service: the interface by which server transports have Calls answered. rpc::Server implements it.
//
// Thread: transports call it from several loops at the same time.
#pragma once

#include <cstddef>
#include <optional>

#include "base/task.h"
#include "rpc/message.h"

namespace stag::rpc {

class Observer;

class Service {
 public:
  // Answers one Call, on the loop of `call.origin`. nullopt: there is no Reply; the reason was
  // traced. `call` outlives the Task. When the connection goes down meanwhile, the Task still runs
  // to its end and its Reply is not sent. An exception, from the call or from the Task, ends the
  // connection: it means that there was no memory even for an error Reply.
  virtual Task<std::optional<OutgoingReply>> serve(IncomingCall& call) = 0;
  // Called before serve() for a Call that has to wait for memory or for its arguments, as soon as
  // it has arrived. `call.payload` is what came inline, and will be served unless it is empty.
  virtual void on_arrival(IncomingCall& /*call*/) {}
  // Whether to fetch the arguments of a Call from the peer's memory by RDMA Read. `message` is what
  // came inline: the RPC header. False: serve() will refuse the Call for its header alone.
  // Allocates nothing.
  virtual bool is_worth_fetching(const Origin& /*origin*/, Bytes /*message*/) const { return true; }
  // An estimate of the bytes of the largest Reply to `call`, for the transport's memory budget;
  // nullopt when unknown. May be wrong, as it is for a Call that will be refused.
  virtual std::optional<std::uint64_t> reply_max(const Origin& /*origin*/,
                                                 const Buffer& /*call*/) const noexcept {
    return std::nullopt;
  }
  // Calls in progress on all loops. A program stops its loops only when there are none.
  virtual std::size_t active_calls() const { return 0; }
  // The observer of connections, and of the Replies that leave them; null: none. Constant while
  // there are transports, which it outlives.
  virtual Observer* observer() const noexcept { return nullptr; }
  // Of active_calls() those on `loop`, or all where the Service does not know.
  virtual std::size_t active_calls_on(const Loop& /*loop*/) const { return active_calls(); }
  // Memory of the program's for an argument that the transport is about to fetch by RDMA Read: the
  // chunk that stands at `position` of the message of `call`, with `length` bytes, which may end
  // with the argument's XDR pad; `call.payload` is what came inline. The Buffer is exclusive, and
  // as long as the argument without its pad; its last reference goes when no Read is outstanding
  // that writes there. Without an owner: the transport's own memory is used.
  virtual Buffer place(const IncomingCall& /*call*/, std::uint32_t /*position*/,
                       std::uint32_t /*length*/) noexcept {
    return {};
  }

 protected:
  ~Service() = default;
};

}  // namespace stag::rpc
