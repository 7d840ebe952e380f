// How an IwarpConnection ends.
#include "fabric/iwarp/iwarp_connection.h"
#include "fabric/iwarp/linger.h"
#include "net/loop.h"

namespace stag::fabric {
namespace {

// For a peer to take what was posted before a close.
constexpr Duration kCloseLimit = std::chrono::seconds(1);

// The provider's reasons in the words every fabric uses.
Reason fabric_reason(Reason reason) {
  switch (reason) {
    case Reason::ReceiveOverrun:
      return Reason::ReceiveOverflow;
    case Reason::StagUnknown:
    case Reason::StagRevoked:
    case Reason::StagAccessViolation:
      return Reason::RemoteAccessDenied;
    case Reason::BaseOrBoundsViolation:
    case Reason::StagOffsetWraps:
      return Reason::RemoteAccessOutOfBounds;
    default:
      return reason;
  }
}

}  // namespace

void IwarpConnection::close(Reason reason) {
  if (state_ != State::Open) return;
  state_ = State::Closing;
  reason_ = reason;
  receiver_.stop();
  socket_.ignore_readable();
  close_limit_ = loop_.after(kCloseLimit, [this] { end(reason_); });
  later(&IwarpConnection::close_when_flushed);
}

void IwarpConnection::close_when_flushed() {
  if (state_ != State::Closing) return;
  close_due_ = true;
  if (events_ == nullptr) return end(reason_);
  flush();
}

void IwarpConnection::end_with(const iwarp::Violation& violation) {
  if (state_ == State::Ended) return;
  trace(violation.reason, to_string(peer_), iwarp::to_string(violation.terminate.error));
  // The message on its way is cut between two FPDUs; what is in the batch is finished from a copy.
  sender_.abort();
  sender_.begin_terminate(violation.terminate);
  // RFC 5044 7.1.2: who has sent a byte of an FPDU, even a bad one, is ready to receive ours.
  if ((active_ || heard_) && !sender_.full(batch_)) static_cast<void>(sender_.fill(batch_));
  end(fabric_reason(violation.reason));
}

std::vector<Token> IwarpConnection::outstanding() {
  std::vector<Token> tokens;
  const auto add = [&tokens](Token token) {
    if (token != kNoToken) tokens.push_back(token);
  };
  while (!leaving_.empty()) add(leaving_.pop().token);
  add(std::exchange(filling_, kNoToken));
  while (!reads_.empty()) add(reads_.pop().token);
  while (const auto operation = queue_.drop()) add(operation->token);
  return tokens;
}

void IwarpConnection::end(Reason reason) {
  if (state_ == State::Ended) return;
  if (state_ == State::Open) reason_ = reason;
  state_ = State::Ended;
  receiver_.stop();
  close_limit_.cancel();
  wakeup_write_timer_.cancel();
  stall_timer_.cancel();
  hold_.cancel();
  sender_.abort();
  batch_.take_private_copies();
  linger(std::exchange(socket_, {}), std::exchange(batch_, {}), std::move(place_));
  for (Token token : outstanding())
    if (events_ != nullptr) events_->on_done(token, reason_);
  tell_end();
}

void IwarpConnection::tell_end() {
  if (events_ == nullptr || std::exchange(end_told_, true)) return;
  events_->on_disconnect(reason_);
}

}  // namespace stag::fabric
