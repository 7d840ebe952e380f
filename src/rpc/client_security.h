// ClientSecurity: the client's half of a security mechanism, behind rpc::Credentials. It sets up a
// security context and gives each Call a CallSecurity, which makes credential and verifier for
// every transmission of the Call and checks the Reply. AUTH_NONE and AUTH_SYS do without.
//
// Thread: the loop of the Channel that the Calls use.
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

// The security of one Call, from its first transmission to its Reply. The functions that make a
// transmission end the call with the Reason of their failure.
class CallSecurity {
 public:
  virtual ~CallSecurity() = default;

  // Begins one more transmission (a mechanism that counts messages counts it) and makes its
  // credential. The body lives until the next call of credential().
  virtual Result<oncrpc::OpaqueAuth, Reason> credential() = 0;
  // Makes the verifier of the same transmission. `header` is the message up to the end of its
  // credential. The body lives until the next call of credential().
  virtual Result<oncrpc::OpaqueAuth, Reason> verifier(Bytes header) = 0;
  // Makes the arguments as they travel in this transmission. Called when the mechanism
  // transforms().
  virtual Result<xdr::Stream, Reason> wrap(const xdr::Stream& arguments);

  // Whether `verifier`, of an accepted Reply, proves that the server answers one of the
  // transmissions.
  virtual bool accepts(const oncrpc::OpaqueAuth& verifier) = 0;
  // Makes the plain results. Called when the mechanism transforms(). `results` owns its bytes.
  virtual Task<Result<Buffer, Reason>> unwrap(Buffer results);

  // Called when the server refused the Call with AUTH_ERROR and `refusal`, a few times a Call at
  // most. True: the Call is worth another ClientSecurity::begin(), which sets up another context.
  virtual bool renew(oncrpc::AuthStat refusal) = 0;
};

class ClientSecurity {
 public:
  virtual ~ClientSecurity() = default;

  // Whether arguments and results travel transformed (with an integrity checksum, or encrypted). No
  // item of such messages is eligible for chunks (RFC 8166 section 8.2.2.3).
  virtual bool transforms() const { return false; }
  // Bytes by which a Reply may be longer than the same Reply with AUTH_NONE.
  virtual std::uint32_t reply_overhead() const = 0;

  // Makes the CallSecurity of a Call with this header. If there is no context, sets one up first,
  // by calls on `channel` within the deadline and CancelToken of `message`.
  virtual Task<Result<std::unique_ptr<CallSecurity>, CallError>> begin(
      Channel& channel, const oncrpc::CallHeader& header, const CallMessage& message) = 0;
  // Gives the context up and tells the server so, if `channel` is connected: before the Channel is
  // closed, when no Call is in progress. A later begin() sets up another one.
  virtual Task<void> end(Channel& channel);
  // What the Calls are protected by: of Kerberos the pseudo-flavor.
  virtual oncrpc::AuthFlavor flavor() const { return oncrpc::AuthFlavor::RPCSEC_GSS; }
};

}  // namespace stag::rpc
