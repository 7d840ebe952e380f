// ClientSecurity: the client's half of a security mechanism, behind Credentials. It sets a context
// up where there is none, and gives each Call a CallSecurity that makes credential and verifier for
// every transmission of it and judges the Reply. What has neither (AUTH_NONE, AUTH_SYS) needs none
// of this.
//
// Thread: all of it on the loop of the Channel that the Calls use.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "base/task.h"
#include "oncrpc/message.h"
#include "rpc/call_error.h"
#include "rpc/message.h"
#include "xdr/stream.h"

namespace stag::rpc {

class Channel;

// One Call, from its first transmission to its Reply.
class CallSecurity {
 public:
  virtual ~CallSecurity() = default;

  // For one more transmission: a mechanism that counts messages counts it. Bodies live until the
  // next one is asked for.
  virtual Result<oncrpc::OpaqueAuth, Reason> credential() = 0;
  // Of the same transmission; `header` is the message up to the end of that credential.
  virtual Result<oncrpc::OpaqueAuth, Reason> verifier(Bytes header) = 0;
  // The arguments as they travel in this transmission; asked where the mechanism transforms().
  virtual Result<xdr::Stream, Reason> wrap(const xdr::Stream& arguments);

  // Whether this verifier of an accepted Reply is the server's, for any of the transmissions.
  virtual bool accepts(const oncrpc::OpaqueAuth& verifier) = 0;
  // The plain results; asked where the mechanism transforms(). `results` owns its bytes.
  virtual Task<Result<Buffer, Reason>> unwrap(Buffer results);
};

class ClientSecurity {
 public:
  virtual ~ClientSecurity() = default;

  // Whether arguments and results travel in another form than their plain one; nothing of such
  // messages is eligible for chunks of its own (RFC 8166 8.2.2.3).
  virtual bool transforms() const { return false; }
  // Bytes by which a Reply may be longer than the same one of AUTH_NONE.
  virtual std::uint32_t reply_overhead() const = 0;

  // What a Call with this program and version needs, after a context was set up by calls of its own
  // on `channel`, if there was none. `message` has the Call's deadline and what cancels it.
  virtual Task<Result<std::unique_ptr<CallSecurity>, CallError>> begin(
      Channel& channel, const oncrpc::CallHeader& header, const CallMessage& message) = 0;
  // The server refused a Call of begin() with AUTH_ERROR and this: whether it is worth another one,
  // with another context. Asked once a Call.
  virtual bool renew(oncrpc::AuthStat refusal) = 0;
};

}  // namespace stag::rpc
