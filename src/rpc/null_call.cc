#include "rpc/null_call.h"

#include "base/bytes.h"
#include "oncrpc/message.h"
#include "xdr/encoder.h"

namespace stag::rpc {
namespace {

std::uint32_t word(Bytes head, std::size_t index) {
  return head.size() < (index + 1) * 4 ? 0 : load_be<std::uint32_t>(head.data() + index * 4);
}

}  // namespace

// RFC 5531 section 9: XID, CALL, RPC version, program, version, procedure.
CallTarget target_of(const xdr::Stream& call) {
  const Bytes head = call.head().bytes();
  return {word(head, 3), word(head, 4), word(head, 5)};
}

xdr::Stream null_call(std::uint32_t xid, const CallTarget& to) {
  oncrpc::CallHeader header;
  header.xid = xid;
  header.program = to.program;
  header.version = to.version;
  xdr::Encoder encoder;
  oncrpc::encode(encoder, header);
  return std::move(encoder).finish();
}

}  // namespace stag::rpc
