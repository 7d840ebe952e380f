// Service: what a server transport hands its Calls to. rpc::Server is one; tests make their own.
#pragma once

#include <cstddef>
#include <optional>

#include "base/task.h"
#include "rpc/message.h"

namespace stag::rpc {

class Service {
 public:
  // Answers one Call, on the loop of `call.origin`; nullopt: there is no answer (the message is
  // dropped, its reason traced). `call` outlives the Task. When the connection is gone meanwhile
  // the Task still runs to its end and its Reply is not sent (design 3.12). Safe to call from
  // several loops at once. An exception, from the call or from the Task, ends the connection: there
  // was no memory even for an answer.
  virtual Task<std::optional<OutgoingReply>> serve(IncomingCall& call) = 0;
  // Whether a Call whose arguments lie in the peer's memory is worth fetching them; false: what is
  // here of it, its RPC header, is enough for serve() to refuse it. Cheap, and takes no memory.
  virtual bool is_worth_fetching(const Origin&, Bytes) const { return true; }
  // Bytes of the largest Reply to `call`, a whole message: what a transport keeps room for before
  // it has it served. It may be wrong, and is for a Call that will be refused.
  virtual std::uint64_t reply_max(const Origin& /*origin*/, const Buffer& /*call*/) const noexcept {
    return 0;
  }
  // Calls being served now, on all loops; whoever stops the loops waits for none.
  virtual std::size_t active_calls() const { return 0; }

 protected:
  ~Service() = default;
};

}  // namespace stag::rpc
