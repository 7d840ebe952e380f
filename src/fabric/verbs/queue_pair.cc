#include "fabric/verbs/queue_pair.h"

#include <algorithm>
#include <cerrno>

#include "fabric/verbs/verbs_reason.h"
#include "fabric/verbs/work_id.h"

namespace stag::fabric {
namespace {

// Shared receives for a peer that has said nothing yet. RPC-over-RDMA allows it one Call (RFC 8166
// section 3.3.1); what comes beyond that waits for receives in the peer's device, which tries
// again.
constexpr std::uint32_t kReceivesBeforeFirst = 8;

}  // namespace

Result<std::unique_ptr<QueuePair>, Reason> QueuePair::make(std::shared_ptr<LoopDevice> device,
                                                           const CmId& id, QueuePairUser& user,
                                                           const QueuePairSizes& sizes) {
  auto domain = device->domain();
  if (!domain) return Failure{domain.error()};
  std::unique_ptr<QueuePair> made(new QueuePair(std::move(device), *std::move(domain), id.get()));
  const auto created = made->create(user, sizes);
  if (!created) return Failure{created.error()};
  return made;
}

Result<Ok, Reason> QueuePair::create(QueuePairUser& user, const QueuePairSizes& sizes) {
  slots_ = std::clamp(sizes.sends, 1u, traits().max_work);
  max_pieces_ = std::min(traits().max_sge, kMostPieces);
  constexpr std::size_t kMostCopied = 64 * 1024;
  max_copied_ = std::min(kMostCopied, max_pieces() * domain_->send_blocks().block_size());
  // One more than the peer may send, so that it is seen when it does.
  receives_ = std::min(sizes.receives + 1, traits().max_work);
  const auto prepared = prepare_receives(sizes);
  if (!prepared) return prepared;
  const std::uint32_t receives = shared_ == nullptr ? receives_ : 0;
  // What finds no slot waits in the connection.
  if (receives < traits().max_completions)
    slots_ = std::min(slots_, traits().max_completions - receives);
  const auto completions = device_->reserve_completions(slots_ + receives);
  if (!completions) return Failure{completions.error()};
  completions_ = *completions;
  const auto created = create_at_device();
  if (!created) return created;
  device_->add(id_->qp->qp_num, user);
  if (own_ == nullptr) return Ok{};
  for (std::uint32_t i = 0; i < receives_; ++i)
    if (RegisteredBlock* block = own_->take(); block == nullptr || !post(block))
      return Failure{Reason::VerbsFailed};
  return Ok{};
}

Result<Ok, Reason> QueuePair::prepare_receives(const QueuePairSizes& sizes) {
  if (!traits().shared_queue) {
    constexpr std::size_t kLine = 64;
    const std::size_t size = (sizes.receive_size + kLine - 1) / kLine * kLine;
    own_ = std::make_unique<BlockPool>(device_->functions(), domain_->pd(), std::max(size, kLine));
    return own_->reserve(receives_);
  }
  const auto shared = domain_->shared_receives(sizes.receive_size, receives_);
  if (!shared) return Failure{shared.error()};
  shared_ = *shared;
  shared_->admit(receives_);
  admitted_ = true;
  if (shared_->completions.queue == nullptr) {
    const auto completions = device_->reserve_completions(shared_->capacity());
    if (!completions) return Failure{completions.error()};
    shared_->completions = *completions;
  }
  return reserve_up_to(sizes.receives_later ? std::min(receives_, kReceivesBeforeFirst)
                                            : receives_);
}

Result<Ok, Reason> QueuePair::reserve_receives() {
  return shared_ == nullptr ? Result<Ok, Reason>(Ok{}) : reserve_up_to(receives_);
}

Result<Ok, Reason> QueuePair::reserve_up_to(std::uint32_t count) {
  const auto reserved = shared_->reserve(count - reserved_);
  if (reserved) reserved_ = count;
  return reserved;
}

Result<Ok, Reason> QueuePair::create_at_device() {
  ibv_qp_init_attr wishes{};
  wishes.send_cq = completions_.queue;
  wishes.recv_cq = shared_ != nullptr ? shared_->completions.queue : completions_.queue;
  wishes.srq = shared_ != nullptr ? shared_->queue() : nullptr;
  wishes.qp_type = IBV_QPT_RC;
  int error = 0;
  // Devices do not say how much they take inline.
  for (const std::uint32_t inlined : {LoopDevice::kMostInline, 64u, 0u}) {
    wishes.cap = {slots_, shared_ != nullptr ? 0 : receives_, max_pieces(), 1, inlined};
    created_ =
        device_->functions().create_qp(const_cast<rdma_cm_id*>(id_), domain_->pd(), &wishes) == 0;
    if (created_) {
      max_inline_ = inlined;
      return Ok{};
    }
    error = errno;
    if (error != EINVAL) break;
  }
  return Failure{reason_of_device_error(error)};
}

QueuePair::~QueuePair() {
  destroy();
}

void QueuePair::destroy() {
  const bool may_lose = awaits_last_receive();
  if (created_) {
    const std::uint32_t number = id_->qp->qp_num;
    device_->remove(number);
    device_->functions().destroy_qp(id_);
    device_->remove(number);
  }
  created_ = false;
  if (std::exchange(admitted_, false)) {
    shared_->leave(receives_, std::exchange(reserved_, 0));
    if (may_lose) shared_->suspect_loss();
    if (shared_->unused()) device_->drop_unused_receives_later();
  }
  if (completions_.queue != nullptr) device_->release_completions(std::exchange(completions_, {}));
}

void QueuePair::drain() {
  const auto device = device_;
  ibv_cq* const sent = completions_.queue;
  // First: who learns that a request has failed ends.
  if (shared_ != nullptr) device->drain(shared_->completions.queue);
  device->drain(sent);
}

bool QueuePair::post(RegisteredBlock* block) {
  ibv_sge memory{reinterpret_cast<std::uintptr_t>(block->data),
                 static_cast<std::uint32_t>(own_->block_size()), block->key};
  ibv_recv_wr work{receive_id(block), nullptr, &memory, 1}, *bad = nullptr;
  return ibv_post_recv(id_->qp, &work, &bad) == 0;
}

bool QueuePair::consumed(RegisteredBlock* block) {
  // What cannot be posted now is posted with the next one.
  if (shared_ != nullptr) return shared_->consumed(block), true;
  if (created_ && post(block)) return true;
  own_->give(block);
  return !created_;
}

void QueuePair::flushed(RegisteredBlock* block) {
  shared_ != nullptr ? shared_->consumed(block) : own_->give(block);
}

}  // namespace stag::fabric
