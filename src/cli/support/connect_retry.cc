#include "cli/support/connect_retry.h"

namespace stag::cli {
namespace {

bool means_silent(Reason reason) {
  return reason == Reason::TimedOut || reason == Reason::ConnectTimedOut;
}

// What passes by itself where a machine, its network or its server is starting.
bool means_absent(Reason reason) {
  switch (reason) {
    case Reason::ConnectionRefused:
    case Reason::ConnectionReset:
    case Reason::ConnectionClosed:
    case Reason::HostNotFound:
    case Reason::HostUnreachable:
    case Reason::NameServiceFailed:
    case Reason::MpaUnanswered:
    case Reason::RpcConnectionLost:
    case Reason::RpcUnanswered:
    case Reason::GssKdcUnreachable:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool ConnectRetry::goes_on(const nfs::client::Error& error, TimePoint now) const {
  if (error.kind != nfs::client::Error::Kind::Call) return false;
  const Reason reason = error.call.reason;
  // An attempt that would begin when the time is over comes too late.
  if (means_silent(reason)) return now + kPause < silent_until_ || now < absent_until_;
  return means_absent(reason) && now < absent_until_;
}

}  // namespace stag::cli
