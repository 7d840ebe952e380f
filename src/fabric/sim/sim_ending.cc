// How a SimConnection ends.
#include <algorithm>

#include "fabric/sim/sim_connection.h"

namespace stag::fabric {

namespace {
// How long posted Sends and Writes may take to reach the peer of a connection that closes.
constexpr Duration kCloseTime = std::chrono::seconds(1);
}  // namespace

void SimConnection::done(const SimOperation& operation, Reason outcome) {
  // The contents of the sink of a Read that failed are nobody's promise.
  if (outcome != Reason::None)
    std::fill(operation.sink.begin(), operation.sink.end(), std::byte{0xbd});
  if (operation.token == kNoToken) return;
  ++delivering_;
  events_->on_done(operation.token, outcome);
  --delivering_;
}

void SimConnection::lose() {
  if (peer_ != nullptr) peer_->lose_this_side();
  lose_this_side();
}

void SimConnection::lose_this_side() {
  if (std::exchange(lost_, true)) return;
  arriving_.clear();
  const auto detection = static_cast<std::uint64_t>(fabric_.options_.loss_detection.count());
  const auto delay = static_cast<Duration::rep>(fabric_.random_.below(detection + 1));
  loss_timer_ = loop_.after(Duration(delay), [this] {
    end(state_ == State::Closing ? reason_ : Reason::ConnectionLost);
  });
}

void SimConnection::close(Reason reason) {
  if (state_ != State::Open) return;
  state_ = State::Closing;
  reason_ = reason;
  outbox_.hold_reads();
  close_timer_ = loop_.after(Duration::zero(), [this] {
    close_timer_ = loop_.after(kCloseTime, [this] { end(reason_); });
    // Before the peer's first message nothing may leave, so there is nothing to wait for.
    if (silent_ || events_ == nullptr) return end(reason_);
    close_when_sent();
  });
}

void SimConnection::close_when_sent() {
  if (state_ != State::Closing || outbox_.sending()) return;
  end(reason_);
}

void SimConnection::end(Reason reason) {
  if (state_ == State::Ending || state_ == State::Gone) return;
  trace(reason, "sim " + to_string(setup_.peer));
  transmit({PacketKind::End, 0, {}, Reason::ConnectionClosed});
  state_ = State::Ending;
  reason_ = reason;
  arriving_.clear();
  memory_.clear();
  schedule_finish();
}

void SimConnection::schedule_finish() {
  if (finish_scheduled_ || events_ == nullptr) return;
  finish_scheduled_ = true;
  finish_timer_ = loop_.after(Duration::zero(), [this] {
    finish_scheduled_ = false;
    finish();
  });
}

void SimConnection::finish() {
  // What these events make the owner post ends in the next turn: it may not be told from inside its
  // own post.
  const Outbox::Id limit = outbox_.next_id();
  while (auto operation = outbox_.take_oldest(limit)) done(*operation, reason_);
  while (!revoking_.empty()) {
    const std::uint32_t handle = revoking_.begin()->first;
    revoking_.erase(revoking_.begin());
    ++delivering_;
    events_->on_revoked(handle);
    --delivering_;
  }
  if (!outbox_.empty()) return schedule_finish();
  if (state_ == State::Gone) return;
  state_ = State::Gone;
  ++delivering_;
  events_->on_disconnect(reason_);
  --delivering_;
}

}  // namespace stag::fabric
