// How a VerbsConnection ends.
#include <algorithm>

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
  close_limit_ = loop_->loop().after(kVerbsCloseLimit, [this] { end(reason_); });
  // The last request may be one that completes silently; those that still wait do not.
  if (Work last; unsignalled_ != 0 && pending_.empty()) post(last);
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
  reason_ = reason;
  later(&VerbsConnection::end_now);
}

void VerbsConnection::expect_end() {
  if (state_ != State::Open || end_expected_) return;
  end_expected_ = true;
  close_limit_ = loop_->loop().after(kVerbsCloseLimit, [this] { end(Reason::ConnectionLost); });
}

void VerbsConnection::end_now() {
  end(reason_);
}

void VerbsConnection::give_back_memory() {
  close_limit_.cancel();
  stall_timer_.cancel();
  if (queue_pair_ == nullptr) return;
  functions().disconnect(id_.get());
  // Windows before their queue pair, which the device keeps as long as one is bound to it.
  for (const auto& [handle, registration] : registrations_)
    if (registration.window != nullptr) ibv_dealloc_mw(registration.window);
  queue_pair_->destroy();
  open_regions_.reset();
  for (const auto& [handle, registration] : registrations_)
    functions().dereg_mr(registration.region);
  for (std::size_t i = 0; i < posted_.size(); ++i) release(posted_[i]);
  for (std::size_t i = 0; i < pending_.size(); ++i) release(pending_[i]);
  for (const Arrived& arrived : early_) queue_pair_->consumed(arrived.block);
  early_.clear();
}

void VerbsConnection::end(Reason reason) {
  if (state_ == State::Ended) return;
  if (state_ == State::Open) reason_ = reason;
  state_ = State::Ended;
  trace(reason_, to_string(peer_));
  give_back_memory();
  std::vector<std::uint32_t> revoked;
  for (const auto& [handle, registration] : registrations_)
    if (registration.revoking) revoked.push_back(handle);
  registrations_.clear();
  std::vector<Token> tokens;
  const auto add = [&tokens](const PostedWork& work) {
    if (work.token != kNoToken) tokens.push_back(work.token);
  };
  while (!posted_.empty()) add(posted_.pop());
  while (!pending_.empty()) add(pending_.pop());
  tokens.insert(tokens.end(), late_.begin(), late_.end());
  late_.clear();
  queue_pair_.reset();
  id_ = {};
  place_.reset();
  if (events_ == nullptr) return late_.swap(tokens);
  for (const Token token : tokens) events_->on_done(token, reason_);
  for (const std::uint32_t handle : revoked) events_->on_revoked(handle);
  tell_end();
}

void VerbsConnection::tell_end() {
  if (events_ == nullptr || std::exchange(end_told_, true)) return;
  for (const Token token : std::exchange(late_, {})) events_->on_done(token, reason_);
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
  stall_timer_ = loop_->loop().after(stall_limit_, [this] { look_at_peer(); });
}

// Requests that wait although nothing has completed since the last look: a peer without receives,
// or one that answers no Read.
void VerbsConnection::look_at_peer() {
  const bool waits = unsignalled_ != posted_.size();
  const bool moved = std::exchange(seen_progress_, progress_) != progress_;
  if (waits && !moved) return end(Reason::PeerStalled);
  watch_peer();
}

}  // namespace stag::fabric
