// ONC RPC version 2 messages (RFC 5531): the headers of Calls and of Replies, with every accept and
// reject status. Pure functions from bytes to values; the code that knows the procedure encodes and
// decodes arguments and results.
//
// Ownership: decoded headers are views; credential and verifier bodies point into the message.
// Errors: numbers are checked and bodies are at most 400 bytes (RFC 5531 section 8.2); a message
// that is cut short or malformed is a Reason.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/reason.h"
#include "base/result.h"
#include "xdr/decoder.h"
#include "xdr/encoder.h"

namespace stag::oncrpc {

inline constexpr std::uint32_t kRpcVersion = 2;
inline constexpr std::uint32_t kMaxAuthBody = 400;  // bytes (RFC 5531 section 8.2)

enum class MessageType : std::uint32_t { CALL = 0, REPLY = 1 };
enum class ReplyStat : std::uint32_t { MSG_ACCEPTED = 0, MSG_DENIED = 1 };
enum class AcceptStat : std::uint32_t {
  SUCCESS = 0,
  PROG_UNAVAIL = 1,
  PROG_MISMATCH = 2,
  PROC_UNAVAIL = 3,
  GARBAGE_ARGS = 4,
  SYSTEM_ERR = 5,
};
enum class RejectStat : std::uint32_t { RPC_MISMATCH = 0, AUTH_ERROR = 1 };
enum class AuthStat : std::uint32_t {
  AUTH_OK = 0,
  AUTH_BADCRED = 1,
  AUTH_REJECTEDCRED = 2,
  AUTH_BADVERF = 3,
  AUTH_REJECTEDVERF = 4,
  AUTH_TOOWEAK = 5,
  AUTH_INVALIDRESP = 6,
  AUTH_FAILED = 7,
  AUTH_KERB_GENERIC = 8,
  AUTH_TIMEEXPIRE = 9,
  AUTH_TKT_FILE = 10,
  AUTH_DECODE = 11,
  AUTH_NET_ADDR = 12,
  RPCSEC_GSS_CREDPROBLEM = 13,
  RPCSEC_GSS_CTXPROBLEM = 14,
};
enum class AuthFlavor : std::uint32_t {
  AUTH_NONE = 0,
  AUTH_SYS = 1,
  AUTH_SHORT = 2,
  AUTH_DH = 3,
  RPCSEC_GSS = 6,
  // Pseudo-flavors (RFC 2623 section 2.2.4): RPCSEC_GSS with Kerberos V5 and the service none,
  // integrity or privacy. They name what a caller has used; on the wire the flavor is RPCSEC_GSS.
  KRB5 = 390003,
  KRB5I = 390004,
  KRB5P = 390005,
};

// A credential or verifier. A view: the body belongs to the message, or to the caller's
// credentials.
struct OpaqueAuth {
  AuthFlavor flavor = AuthFlavor::AUTH_NONE;
  Bytes body;
};

struct CallHeader {
  std::uint32_t xid = 0;
  std::uint32_t program = 0;
  std::uint32_t version = 0;
  std::uint32_t procedure = 0;
  OpaqueAuth credential{};
  OpaqueAuth verifier{};
};

// The lowest and the highest version that the server supports.
struct VersionRange {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  friend bool operator==(const VersionRange&, const VersionRange&) = default;
};

// The status of a Reply: MSG_ACCEPTED with `accept` (and `versions` for PROG_MISMATCH), or
// MSG_DENIED with `reject` (and `versions` for RPC_MISMATCH, `auth` for AUTH_ERROR).
struct ReplyStatus {
  ReplyStat reply = ReplyStat::MSG_ACCEPTED;
  AcceptStat accept = AcceptStat::SUCCESS;
  RejectStat reject = RejectStat::RPC_MISMATCH;
  AuthStat auth = AuthStat::AUTH_OK;
  VersionRange versions{};

  bool success() const { return reply == ReplyStat::MSG_ACCEPTED && accept == AcceptStat::SUCCESS; }
  static ReplyStatus accepted(AcceptStat stat, VersionRange versions = {});
  static ReplyStatus rpc_mismatch();
  static ReplyStatus auth_error(AuthStat stat);
  friend bool operator==(const ReplyStatus&, const ReplyStatus&) = default;
};

struct ReplyHeader {
  std::uint32_t xid = 0;
  OpaqueAuth verifier{};  // of an accepted Reply
  ReplyStatus status{};
};

// Bytes of this header as it was received: up to the end of its credential (RFC 2203 section 5.3.1:
// the part that a verifier signs), and up to the arguments.
std::size_t credential_end(const CallHeader& header);
std::size_t header_size(const CallHeader& header);

// Bytes of a Reply header with an AUTH_NONE verifier in front of results, and of the longest error
// Reply.
inline constexpr std::uint32_t kReplyHeaderSize = 24;
inline constexpr std::uint32_t kMaxErrorReplySize = 32;

// Why a Call header cannot be used. A Call with a wrong RPC version is answered with RPC_MISMATCH,
// under `xid`.
struct CallFault {
  Reason reason = Reason::None;
  bool wrong_rpc_version = false;
  std::uint32_t xid = 0;
};

// Decode a header; the decoder then stands at the arguments or results. Bodies are views into its
// payload.
Result<CallHeader, CallFault> decode_call(xdr::Decoder& from);
Result<ReplyHeader, Reason> decode_reply(xdr::Decoder& from);

// The first two words of any RPC message. peek() fails when the message is shorter than 8 bytes or
// its type is unknown.
struct MessageStart {
  std::uint32_t xid = 0;
  MessageType type = MessageType::CALL;
};
Result<MessageStart, Reason> peek(Bytes message);

// Encode a header. Bodies are at most kMaxAuthBody bytes.
void encode(xdr::Encoder& to, const CallHeader& header);
void encode(xdr::Encoder& to, const OpaqueAuth& auth);
// The same with credential and verifier as encoded before, `auth`; those of `header` are ignored.
void encode(xdr::Encoder& to, const CallHeader& header, Bytes auth);
void encode(xdr::Encoder& to, const ReplyHeader& header);
// Encode the header of a Reply with results: SUCCESS, with an AUTH_NONE verifier or `verifier`.
void encode_success(xdr::Encoder& to, std::uint32_t xid);
void encode_success(xdr::Encoder& to, std::uint32_t xid, const OpaqueAuth& verifier);

}  // namespace stag::oncrpc
