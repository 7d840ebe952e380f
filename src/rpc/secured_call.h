// A Call that a ClientSecurity protects: makes a new message for every transmission and opens the
// Reply. Lives in the coroutine frame of its call. Thread: the Channel's loop.
#pragma once

#include <cstdint>
#include <memory>

#include "rpc/client_security.h"
#include "rpc/message.h"

namespace stag::rpc {

class SecuredCall final : public CallSigner {
 public:
  // `security` outlives this object and makes credential and verifier; those of `header` are
  // ignored.
  SecuredCall(ClientSecurity& security, const oncrpc::CallHeader& header)
      : security_(security), header_(header) {}

  // Called once, before call(): takes over the stream of `message`, which is the arguments alone,
  // and enlarges its Reply bound, which is that of AUTH_NONE.
  void take(CallMessage& message);

  // Makes the call and opens its Reply. The payload is the whole message, or, where the mechanism
  // transforms(), the plain results alone. A Reply without results is a CallError.
  Task<Result<ReplyMessage, CallError>> call(Channel& channel, CallMessage& message);

  Result<Ok, Reason> sign(CallMessage& message) override;

 private:
  Result<Ok, Reason> make(CallMessage& message);
  Task<Result<ReplyMessage, CallError>> open(Channel& channel, ReplyMessage reply);

  ClientSecurity& security_;
  oncrpc::CallHeader header_;
  xdr::Stream arguments_;
  std::unique_ptr<CallSecurity> transmissions_;
  std::uint32_t unanswered_ = 0;  // transmissions
};

}  // namespace stag::rpc
