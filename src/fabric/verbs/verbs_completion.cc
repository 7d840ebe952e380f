// What a VerbsConnection does when its device has completed something.
#include <cstring>
#include <new>
#include <utility>

#include "fabric/verbs/verbs_connection.h"
#include "fabric/verbs/verbs_reason.h"
#include "fabric/verbs/work_id.h"

namespace stag::fabric {

void VerbsConnection::on_completion(const ibv_wc& completion) {
  ++progress_;
  is_receive(completion.wr_id) ? on_receive(completion) : on_sent(completion);
}

void VerbsConnection::on_device_failure(Reason reason) {
  if (reason == kLastReceive) queue_pair_->on_last_receive();
  if (!on_setup_) return end(reason);
  // Of anything else RDMA-CM tells.
  if (reason == Reason::OutOfMemory) std::exchange(on_setup_, {})(reason);
}

void VerbsConnection::on_receive(const ibv_wc& completion) {
  Arrived arrived{block_of(completion.wr_id), completion.byte_len, std::nullopt};
  if (completion.status != IBV_WC_SUCCESS) {
    queue_pair_->flushed(arrived.block);
    // A flushed receive says only that something else tells why, or soon will.
    if (completion.status == IBV_WC_WR_FLUSH_ERR) return expect_end();
    return end(reason_of_receive(completion.status));
  }
  if (state_ != State::Open) return static_cast<void>(queue_pair_->consumed(arrived.block));
  if (!std::exchange(heard_, true)) {
    // A peer that sends has had the answer: the message of InfiniBand's CM that says so is late or
    // lost. RDMA-CM tells then that the connection is established.
    if (on_setup_ && !active_ && !queue_pair_->traits().iwarp)
      functions().notify(id_.get(), IBV_EVENT_COMM_EST);
    const auto reserved = queue_pair_->reserve_receives();
    if (!reserved) {
      queue_pair_->consumed(arrived.block);
      return on_setup_ ? std::exchange(on_setup_, {})(reserved.error()) : end(reserved.error());
    }
  }
  if ((completion.wc_flags & queue_pair_->traits().invalidation_flags) != 0) {
    const Registration* const known = registrations_.find(completion.invalidated_rkey);
    if (known == nullptr || known->window == nullptr) {
      queue_pair_->consumed(arrived.block);
      return end(Reason::RemoteAccessDenied);
    }
    // A revocation that is on its way is told by on_revoked().
    if (!known->revoking) {
      forget(known);
      arrived.invalidated = completion.invalidated_rkey;
    }
  }
  if (events_ != nullptr && early_.empty()) return deliver(arrived);
  if (early_.size() > receives_max_) {
    queue_pair_->consumed(arrived.block);
    return end(Reason::ReceiveOverflow);
  }
  try {
    early_.push_back(arrived);
  } catch (const std::bad_alloc&) {
    queue_pair_->consumed(arrived.block);
    on_device_failure(Reason::OutOfMemory);
  }
}

void VerbsConnection::deliver(const Arrived& arrived) {
  const bool too_many = credit_.count == 0;
  if (too_many || arrived.length > credit_.size) {
    queue_pair_->consumed(arrived.block);
    return end(too_many ? Reason::ReceiveOverflow : Reason::MessageTooLong);
  }
  --credit_.count;
  ++traffic_.sends_in;
  collecting_ = true;
  try {
    events_->on_receive(Buffer::borrow({arrived.block->data, arrived.length}), arrived.invalidated);
  } catch (...) {
    stop_collecting();
    // It may be one that others share.
    queue_pair_->consumed(arrived.block);
    throw;
  }
  stop_collecting();
  if (!queue_pair_->consumed(arrived.block)) end_later(Reason::VerbsFailed);
  pump();
}

void VerbsConnection::on_sent(const ibv_wc& completion) {
  // Of those behind one that has failed the silent ones have failed, too.
  if (state_ == State::Ended || failure_ != Reason::None) return;
  const bool good = completion.status == IBV_WC_SUCCESS;
  // All before this one are done, signalled or not, but Reads, which are always signalled: siw
  // tells of a later Send first.
  const std::uint64_t end_of_good = completion.wr_id + (good ? 1 : 0);
  while (passed_ < end_of_good && state_ != State::Ended) {
    PostedWork& next = posted_[passed_ - first_];
    const bool is_first = first_ == passed_++;
    if (next.kind == WorkKind::Read) {
      ++reads_passed_;
      continue;
    }
    complete(next);
    if (!is_first || state_ == State::Ended) continue;
    posted_.drop();
    ++first_;
  }
  if (state_ == State::Ended) return;
  if (PostedWork* own = good ? &posted_[completion.wr_id - first_] : nullptr;
      own != nullptr && own->kind == WorkKind::Read)
    complete(*own);
  if (state_ == State::Ended) return;
  for (; first_ < passed_ && posted_[0].kind == WorkKind::Done; ++first_) posted_.drop();
  if (!good) return fail(reason_of_completion(completion.status));
  pump();
  close_when_sent();
}

// The slot stays until all before it have ended.
void VerbsConnection::complete(PostedWork& posted) {
  const WorkKind kind = std::exchange(posted.kind, WorkKind::Done);
  const std::uint32_t key = posted.key;
  const Token token = std::exchange(posted.token, kNoToken);
  completed_bytes_ += posted.length;
  if (kind == WorkKind::Read) {
    ++reads_answered_;
    traffic_.read_bytes_in += posted.length;
    if (posted.blocks != nullptr)
      std::memcpy(posted.sink.data(), posted.blocks->data, posted.sink.size());
  }
  if (posted.blocks != nullptr || posted.region != nullptr) release(posted);
  // The user that is told may post more, and the slots move.
  if (kind == WorkKind::Invalidate) {
    if (const Registration* known = registrations_.find(key)) forget(known);
    if (events_ != nullptr) events_->on_revoked(key);
  }
  if (token != kNoToken) events_->on_done(token, Reason::None);
}

}  // namespace stag::fabric
