#include "rpc/call_error.h"

namespace stag::rpc {
namespace {

std::string range(const oncrpc::VersionRange& versions) {
  return std::to_string(versions.low) + " to " + std::to_string(versions.high);
}

std::string words(oncrpc::AuthStat refusal) {
  using oncrpc::AuthStat;
  switch (refusal) {
    case AuthStat::AUTH_REJECTEDCRED:
      return "the server does not take credentials of this kind (AUTH_REJECTEDCRED); for Kerberos "
             "it wants a keytab";
    case AuthStat::AUTH_TOOWEAK:
      return "the server wants stronger credentials (AUTH_TOOWEAK)";
    case AuthStat::RPCSEC_GSS_CREDPROBLEM:
      return "the server does not know the security context (RPCSEC_GSS_CREDPROBLEM)";
    case AuthStat::RPCSEC_GSS_CTXPROBLEM:
      return "the server cannot use the security context (RPCSEC_GSS_CTXPROBLEM)";
    default:
      return "the server refused the credentials (auth_stat " +
             std::to_string(static_cast<std::uint32_t>(refusal)) + ")";
  }
}

std::string words(const oncrpc::ReplyStatus& status) {
  using oncrpc::AcceptStat;
  if (status.reply == oncrpc::ReplyStat::MSG_DENIED) {
    if (status.reject == oncrpc::RejectStat::RPC_MISMATCH)
      return "the server speaks other RPC versions (" + range(status.versions) + ")";
    return words(status.auth);
  }
  switch (status.accept) {
    case AcceptStat::SUCCESS:
      return "the call succeeded";
    case AcceptStat::PROG_UNAVAIL:
      return "the server does not serve this program";
    case AcceptStat::PROG_MISMATCH:
      return "the server serves versions " + range(status.versions) + " of this program only";
    case AcceptStat::PROC_UNAVAIL:
      return "the server does not know this procedure";
    case AcceptStat::GARBAGE_ARGS:
      return "the server cannot decode the arguments";
    case AcceptStat::SYSTEM_ERR:
      return "the server failed (out of memory or the like)";
  }
  return "the server answered with an unknown status";
}

CallError make(CallError::Kind kind, Reason reason, std::string where) {
  CallError error;
  error.kind = kind;
  error.reason = reason;
  error.where = std::move(where);
  return error;
}

}  // namespace

CallError CallError::transport(Reason reason, std::string where) {
  return make(Kind::Transport, reason, std::move(where));
}

CallError CallError::answered(oncrpc::ReplyStatus status, std::string where) {
  CallError error = make(Kind::Answered, Reason::None, std::move(where));
  error.status = status;
  return error;
}

CallError CallError::malformed(Reason reason, std::string where) {
  return make(Kind::Malformed, reason, std::move(where));
}

std::string CallError::message() const {
  const std::string what = kind == Kind::Answered ? words(status) : std::string(info(reason).text);
  return where.empty() ? what : where + ": " + what;
}

}  // namespace stag::rpc
