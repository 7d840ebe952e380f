// A Call that a ClientSecurity protects: makes its message anew for every transmission and opens
// its Reply. Lives in the frame of the call that it belongs to.
#pragma once

#include <memory>

#include "rpc/client_security.h"
#include "rpc/message.h"

namespace stag::rpc {

class SecuredCall final : public CallSigner {
 public:
  // `security` outlives this; the header's auth is left to it.
  SecuredCall(ClientSecurity& security, const oncrpc::CallHeader& header)
      : security_(security), header_(header) {}

  // Before the call: the stream of `message` is its arguments alone, and its Reply is described as
  // that of AUTH_NONE.
  void take(CallMessage& message);

  // Makes the call and opens its Reply, whose payload is the whole message, or, where the mechanism
  // transforms, the plain results alone. A Reply without results is a CallError.
  Task<Result<ReplyMessage, CallError>> call(Channel& channel, CallMessage& message);

  Result<Ok, Reason> sign(CallMessage& message) override;

 private:
  Result<Ok, Reason> make(CallMessage& message);
  Task<Result<ReplyMessage, CallError>> open(Channel& channel, ReplyMessage reply);

  ClientSecurity& security_;
  oncrpc::CallHeader header_;
  xdr::Stream arguments_;
  std::unique_ptr<CallSecurity> transmissions_;
};

}  // namespace stag::rpc
