// How a VerbsConnection ends.
#include <algorithm>
#include <new>
#include <utility>

#include "fabric/verbs/verbs_connection.h"

namespace stag::fabric {
namespace {

// For a peer to take what was posted before a close.
constexpr Duration kVerbsCloseLimit = std::chrono::seconds(1);

}  // namespace

void VerbsConnection::close(Reason reason) {
  if (state_ != State::Open) return;
  state_ = State::Closing;
  reason_ = reason;
  try {
    close_limit_ = loop_->loop().after(kVerbsCloseLimit, [this] { end(reason_); });
    // The last request may be one that completes silently; those that still wait do not.
    if (Work last; unsignalled_ != 0 && pending_.empty()) post(last);
  } catch (const std::bad_alloc&) {
    return later(&VerbsConnection::end_now);
  }
  loop_->loop().post([anchor = anchor_] {
    if (anchor->connection == nullptr) return;
    anchor->connection->close_due_ = true;
    anchor->connection->close_when_sent();
  });
}

void VerbsConnection::close_when_sent() {
  if (state_ != State::Closing || !close_due_) return;
  // Before the peer's first message nothing may leave, so there is nothing to wait for.
  const bool silent = !active_ && !heard_;
  if (silent || events_ == nullptr || (posted_.empty() && pending_.empty())) end(reason_);
}

void VerbsConnection::end_later(Reason reason) {
  if (state_ != State::Open) return;
  state_ = State::Closing;
  reason_ = failure_ != Reason::None ? failure_ : reason;
  later(&VerbsConnection::end_now);
}

void VerbsConnection::expect_end() {
  if (state_ != State::Open || end_expected_) return;
  end_expected_ = true;
  close_limit_ = loop_->loop().after(kVerbsCloseLimit, [this] { end(Reason::ConnectionLost); });
}

void VerbsConnection::fail(Reason reason) {
  failure_ = reason;
  later(&VerbsConnection::end_failed);
}

void VerbsConnection::end_failed() {
  if (state_ != State::Ended) queue_pair_->drain();
  end(failure_);
}

void VerbsConnection::end_now() {
  end(reason_);
}

void VerbsConnection::give_back_memory() {
  close_limit_.cancel();
  stall_timer_.cancel();
  if (queue_pair_ == nullptr) return;
  if (std::exchange(batched_, false)) queue_pair_->batch().take();
  functions().disconnect(id_.get());
  // Windows before their queue pair, which the device keeps as long as one is bound to it.
  registrations_.for_each([](std::uint32_t, const Registration& registration) {
    if (registration.window != nullptr) ibv_dealloc_mw(registration.window);
  });
  // What the device has never seen, before what it has: they may share a block, which goes with the
  // last of its users.
  for (std::size_t i = 0; i < pending_.size(); ++i) release(pending_[i]);
  end_device_use();
  open_regions_.reset();
  registrations_.for_each([this](std::uint32_t, const Registration& registration) {
    queue_pair_->domain().give_back(registration.region);
  });
  for (std::size_t i = 0; i < posted_.size(); ++i) release(posted_[i]);
  for (const Arrived& arrived : early_) queue_pair_->consumed(arrived.block);
  early_.clear();
}

// After the queue pair, and in a later turn: rdma-core closes a device that was removed with the
// last id there, and the loop's part of the device may live until this turn ends.
void VerbsConnection::release_id() {
  if (retired_ != nullptr)
    return std::exchange(retired_, nullptr)
        ->begin(std::move(id_), std::move(queue_pair_), std::move(place_));
  queue_pair_.reset();
  if (id_.get() == nullptr) return;
  id_.belongs_to(CmUser::nobody());
  loop_->loop().post([id = std::move(id_)] {});
}

void VerbsConnection::end(Reason reason) {
  if (state_ == State::Ended) return;
  if (state_ == State::Open) reason_ = failure_ != Reason::None ? failure_ : reason;
  state_ = State::Ended;
  trace(reason_, where_);
  give_back_memory();
  release_id();
  place_.reset();
  tell_end();
}

// Once events have begun. Takes no memory, so that the owner is told whatever there is left.
void VerbsConnection::tell_end() {
  if (events_ == nullptr || end_told_) return;
  const auto tell = [this](const PostedWork& work) {
    if (work.token != kNoToken) events_->on_done(work.token, reason_);
  };
  while (!posted_.empty()) tell(posted_.pop());
  while (!pending_.empty()) tell(pending_.pop());
  end_told_ = true;
  for (const Token token : std::exchange(late_, {})) events_->on_done(token, reason_);
  registrations_.for_each([this](std::uint32_t handle, const Registration& registration) {
    if (registration.revoking) events_->on_revoked(handle);
  });
  events_->on_disconnect(reason_);
}

// Ends with the connection, or, when that has ended, in a later turn.
void VerbsConnection::post_late(Token token) {
  if (token == kNoToken) return;
  if (!end_told_) return late_.push_back(token);
  loop_->loop().post([anchor = anchor_, token] {
    if (anchor->connection != nullptr)
      anchor->connection->events_->on_done(token, anchor->connection->reason_);
  });
}

void VerbsConnection::watch_peer() {
  if (stall_limit_ == Duration(0) || state_ == State::Ended) return;
  stall_timer_ = loop_->loop().after(stall_limit_ / 2, [this] { look_at_peer(); });
}

// A peer without receives, or one that answers no Read. What it sends meanwhile excuses neither,
// and on siw what it takes does not excuse a Read.
void VerbsConnection::look_at_peer() {
  const TimePoint now = loop_->loop().now();
  const std::uint64_t last_signalled = first_ + posted_.size() - unsignalled_;
  if (taking_.is_stalled(now, {last_signalled, passed_, completed_bytes_}) ||
      answering_.is_stalled(now, {reads_passed_, reads_answered_, traffic_.read_bytes_in}))
    return end(Reason::PeerStalled);
  watch_peer();
}

}  // namespace stag::fabric
