#include "oncrpc/message.h"

namespace stag::oncrpc {
namespace {

using xdr::Decoder;
using xdr::Encoder;

// The body of a credential or verifier whose flavor and length have been read. Most are empty.
inline Reason take_body(Decoder& from, OpaqueAuth& auth, std::uint32_t flavor,
                        std::uint32_t length) {
  auth.flavor = static_cast<AuthFlavor>(flavor);
  if (length > kMaxAuthBody) return Reason::RpcAuthTooLong;
  const bool taken = length == 0 || from.inline_bytes(auth.body, length);
  return taken ? Reason::None : Reason::RpcMessageTruncated;
}

// A number that must be one of an enumeration whose last value is `last`.
template <class Enum>
bool known(std::uint32_t value, Enum last, Enum& to) {
  to = static_cast<Enum>(value);
  return value <= static_cast<std::uint32_t>(last);
}

Reason take_versions(Decoder& from, VersionRange& versions) {
  return from.integers(versions.low, versions.high) ? Reason::None : Reason::RpcMessageTruncated;
}

Reason take_accepted(Decoder& from, ReplyHeader& header) {
  std::uint32_t flavor = 0, length = 0, stat = 0;
  if (!from.integers(flavor, length)) return Reason::RpcMessageTruncated;
  if (Reason why = take_body(from, header.verifier, flavor, length); why != Reason::None)
    return why;
  if (!from.u32(stat)) return Reason::RpcMessageTruncated;
  if (!known(stat, AcceptStat::SYSTEM_ERR, header.status.accept))
    return Reason::RpcReplyStatusUnknown;
  if (header.status.accept != AcceptStat::PROG_MISMATCH) return Reason::None;
  return take_versions(from, header.status.versions);
}

Reason take_denied(Decoder& from, ReplyStatus& status) {
  std::uint32_t stat = 0;
  if (!from.u32(stat)) return Reason::RpcMessageTruncated;
  if (!known(stat, RejectStat::AUTH_ERROR, status.reject)) return Reason::RpcReplyStatusUnknown;
  if (status.reject == RejectStat::RPC_MISMATCH) return take_versions(from, status.versions);
  std::uint32_t auth = 0;
  if (!from.u32(auth)) return Reason::RpcMessageTruncated;
  // The registry of auth_stat grows (RFC 5531 section 9); an unknown one is still a refusal.
  status.auth = static_cast<AuthStat>(auth);
  return Reason::None;
}

Reason take_reply(Decoder& from, ReplyHeader& header) {
  std::uint32_t type = 0, stat = 0;
  if (!from.integers(header.xid, type, stat)) return Reason::RpcMessageTruncated;
  if (type != static_cast<std::uint32_t>(MessageType::REPLY)) return Reason::RpcMessageTypeUnknown;
  if (!known(stat, ReplyStat::MSG_DENIED, header.status.reply))
    return Reason::RpcReplyStatusUnknown;
  return header.status.reply == ReplyStat::MSG_ACCEPTED ? take_accepted(from, header)
                                                        : take_denied(from, header.status);
}

Reason take_call(Decoder& from, CallHeader& header) {
  std::uint32_t type = 0, version = 0, flavor = 0, length = 0;
  if (!from.integers(header.xid, type, version)) return Reason::RpcMessageTruncated;
  if (type != static_cast<std::uint32_t>(MessageType::CALL)) return Reason::RpcMessageTypeUnknown;
  if (version != kRpcVersion) return Reason::RpcVersionUnsupported;
  if (!from.integers(header.program, header.version, header.procedure, flavor, length))
    return Reason::RpcMessageTruncated;
  if (Reason why = take_body(from, header.credential, flavor, length); why != Reason::None)
    return why;
  if (!from.integers(flavor, length)) return Reason::RpcMessageTruncated;
  return take_body(from, header.verifier, flavor, length);
}

}  // namespace

ReplyStatus ReplyStatus::accepted(AcceptStat stat, VersionRange range) {
  ReplyStatus status;
  status.accept = stat;
  status.versions = range;
  return status;
}

ReplyStatus ReplyStatus::rpc_mismatch() {
  ReplyStatus status;
  status.reply = ReplyStat::MSG_DENIED;
  status.reject = RejectStat::RPC_MISMATCH;
  status.versions = {kRpcVersion, kRpcVersion};
  return status;
}

ReplyStatus ReplyStatus::auth_error(AuthStat stat) {
  ReplyStatus status;
  status.reply = ReplyStat::MSG_DENIED;
  status.reject = RejectStat::AUTH_ERROR;
  status.auth = stat;
  return status;
}

// Six words, then flavor, length and padded body.
std::size_t credential_end(const CallHeader& header) {
  return 24 + 8 + header.credential.body.size() + xdr_pad(header.credential.body.size());
}

std::size_t header_size(const CallHeader& header) {
  return credential_end(header) + 8 + header.verifier.body.size() +
         xdr_pad(header.verifier.body.size());
}

Result<MessageStart, Reason> peek(Bytes message) {
  if (message.size() < 8) return Failure{Reason::RpcMessageTruncated};
  MessageStart start;
  start.xid = load_be<std::uint32_t>(message.data());
  if (!known(load_be<std::uint32_t>(message.data() + 4), MessageType::REPLY, start.type))
    return Failure{Reason::RpcMessageTypeUnknown};
  return start;
}

Result<CallHeader, CallFault> decode_call(Decoder& from) {
  Result<CallHeader, CallFault> result(std::in_place);
  if (const Reason why = take_call(from, *result); why != Reason::None)
    result = Failure{CallFault{why, why == Reason::RpcVersionUnsupported, result->xid}};
  return result;
}

Result<ReplyHeader, Reason> decode_reply(Decoder& from) {
  Result<ReplyHeader, Reason> result(std::in_place);
  if (const Reason why = take_reply(from, *result); why != Reason::None) result = Failure{why};
  return result;
}

void encode(Encoder& to, const OpaqueAuth& auth) {
  STAG_CHECK(auth.body.size() <= kMaxAuthBody);
  to.u32(static_cast<std::uint32_t>(auth.flavor));
  to.opaque(xdr::kNoItem, auth.body);
}

void encode(Encoder& to, const CallHeader& header) {
  encode(to, header, {});
  encode(to, header.credential);
  encode(to, header.verifier);
}

void encode(Encoder& to, const CallHeader& header, Bytes auth) {
  to.u32s(header.xid, MessageType::CALL, kRpcVersion, header.program, header.version,
          header.procedure);
  to.fixed_opaque(auth);
}

void encode_success(Encoder& to, std::uint32_t xid) {
  to.u32s(xid, MessageType::REPLY, ReplyStat::MSG_ACCEPTED, AuthFlavor::AUTH_NONE, 0,
          AcceptStat::SUCCESS);
}

void encode_success(Encoder& to, std::uint32_t xid, const OpaqueAuth& verifier) {
  to.u32s(xid, MessageType::REPLY, ReplyStat::MSG_ACCEPTED);
  encode(to, verifier);
  to.u32(static_cast<std::uint32_t>(AcceptStat::SUCCESS));
}

void encode(Encoder& to, const ReplyHeader& header) {
  const ReplyStatus& status = header.status;
  to.u32s(header.xid, MessageType::REPLY, status.reply);
  bool versions = false;
  if (status.reply == ReplyStat::MSG_ACCEPTED) {
    encode(to, header.verifier);
    to.u32(static_cast<std::uint32_t>(status.accept));
    versions = status.accept == AcceptStat::PROG_MISMATCH;
  } else {
    to.u32(static_cast<std::uint32_t>(status.reject));
    versions = status.reject == RejectStat::RPC_MISMATCH;
    if (!versions) to.u32(static_cast<std::uint32_t>(status.auth));
  }
  if (!versions) return;
  to.u32(status.versions.low);
  to.u32(status.versions.high);
}

}  // namespace stag::oncrpc
