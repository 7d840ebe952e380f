#include "fabric/verbs/retired_queue_pair.h"

#include <new>
#include <utility>

#include "fabric/verbs/verbs_reason.h"
#include "fabric/verbs/work_id.h"

namespace stag::fabric {
namespace {

// For a device to say that nothing more comes.
constexpr Duration kRetiredLimit = std::chrono::seconds(1);

}  // namespace

bool RetiredQueuePair::limit_time() noexcept try {
  limit_ = loop_.after(kRetiredLimit, [self = shared_from_this()] { self->finish(); });
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void RetiredQueuePair::begin(CmId id, std::unique_ptr<QueuePair> queue_pair,
                             std::shared_ptr<void> place) {
  id_ = std::move(id);
  id_.belongs_to(*this);
  queue_pair_ = std::move(queue_pair);
  queue_pair_->belongs_to(*this);
  place_ = std::move(place);
}

void RetiredQueuePair::on_completion(const ibv_wc& completion) {
  if (is_receive(completion.wr_id)) queue_pair_->flushed(block_of(completion.wr_id));
}

void RetiredQueuePair::on_device_failure(Reason reason) {
  if (reason != kLastReceive && reason != Reason::VerbsDeviceRemoved) return;
  queue_pair_->on_last_receive();
  finish();
}

void RetiredQueuePair::on_cm(CmNotice notice) {
  if (notice.type == RDMA_CM_EVENT_DEVICE_REMOVAL) on_device_failure(Reason::VerbsDeviceRemoved);
}

void RetiredQueuePair::finish() {
  const auto self = shared_from_this();
  limit_.cancel();
  queue_pair_->destroy();
  while (blocks_ != nullptr)
    queue_pair_->domain().send_blocks().give(std::exchange(blocks_, blocks_->next));
  queue_pair_.reset();
  place_.reset();
  // As a connection's does: not before the loop's part of the device.
  id_.belongs_to(CmUser::nobody());
  loop_.post([id = std::move(id_)] {});
}

}  // namespace stag::fabric
