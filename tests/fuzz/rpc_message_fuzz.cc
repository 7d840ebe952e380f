// RPC Calls and Replies with their credentials, cut from any bytes.
#include "input.h"
#include "oncrpc/auth_sys.h"
#include "oncrpc/message.h"

using namespace stag;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes message = fuzz::Input(data, size).rest();
  static_cast<void>(oncrpc::peek(message));
  xdr::Decoder call_decoder(Buffer::copy_of(message));
  Result<oncrpc::CallHeader, oncrpc::CallFault> call = oncrpc::decode_call(call_decoder);
  if (call.ok()) {
    STAG_CHECK(call->credential.body.size() <= oncrpc::kMaxAuthBody &&
               call->verifier.body.size() <= oncrpc::kMaxAuthBody);
    static_cast<void>(oncrpc::decode_auth_sys(call->credential.body));
  }
  xdr::Decoder reply_decoder(Buffer::copy_of(message));
  static_cast<void>(oncrpc::decode_reply(reply_decoder));
  return 0;
}
