// How an IwarpConnection ends.
#include <new>
#include <utility>

#include "base/failure.h"
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
  try {
    close_limit_ = loop_.after(kCloseLimit, [this] { end(reason_); });
    later(&IwarpConnection::close_when_flushed);
  } catch (const std::bad_alloc&) {
    return break_off();
  }
  socket_.ignore_readable();
}

void IwarpConnection::close_when_flushed() {
  if (state_ != State::Closing) return;
  close_due_ = true;
  if (events_ == nullptr) return end(reason_);
  flush();
}

// Called by the owner, too, who is told of the end in a later turn. Where there is no memory for
// that, the end of the incoming stream is a turn for which none is needed.
void IwarpConnection::break_off() noexcept {
  if (state_ == State::Open) {
    reason_ = Reason::OutOfMemory;
    receiver_.stop();
  }
  state_ = State::Broken;
  sender_.abort();
  batch_.clear();
  borrowed_until_ = 0;
  try {
    later(&IwarpConnection::end_now);
  } catch (const std::bad_alloc&) {
    socket_.shutdown_read();
  }
}

void IwarpConnection::end_if_broken() {
  if (state_ == State::Broken) end(reason_);
}

void IwarpConnection::end_by_exception() {
  busy_ = false;
  end(trace_exception(Reason::LoopFunctionFailed));
}

void IwarpConnection::end_with(const iwarp::Violation& violation) {
  if (state_ == State::Ended) return;
  // The message on its way is cut between two FPDUs; what is in the batch is finished from a copy.
  sender_.abort();
  try {
    trace(violation.reason, to_string(peer_), iwarp::to_string(violation.terminate.error));
    sender_.begin_terminate(violation.terminate);
    // RFC 5044 7.1.2: who has sent a byte of an FPDU, even a bad one, is ready to receive ours.
    if ((active_ || heard_) && !sender_.full(batch_)) static_cast<void>(sender_.fill(batch_));
  } catch (const std::bad_alloc&) {
    // The peer finds out by the end of the stream.
  }
  end(fabric_reason(violation.reason));
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
  release_socket();
  tell_end();
}

// For a good end of the stream, where there is memory for it.
void IwarpConnection::release_socket() {
  try {
    batch_.take_private_copies();
    linger(std::exchange(socket_, {}), std::exchange(batch_, {}), std::move(place_));
  } catch (const std::bad_alloc&) {
    socket_ = {};
    batch_.clear();
    place_.reset();
  }
}

// Once events have begun. Takes no memory, so that the owner is told whatever there is left.
void IwarpConnection::tell_end() {
  if (events_ == nullptr || std::exchange(end_told_, true)) return;
  const auto tell = [this](Token token) {
    if (token != kNoToken) events_->on_done(token, reason_);
  };
  while (!leaving_.empty()) tell(leaving_.pop().token);
  tell(std::exchange(filling_, kNoToken));
  while (!reads_.empty()) tell(reads_.pop().token);
  while (const auto operation = queue_.drop()) tell(operation->token);
  for (const Token late : std::exchange(late_, {})) tell(late);
  events_->on_disconnect(reason_);
}

}  // namespace stag::fabric
