#include "fabric/verbs/loop_device.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "fabric/verbs/device_registry.h"
#include "fabric/verbs/verbs_reason.h"
#include "fabric/verbs/work_id.h"

namespace stag::fabric {
namespace {

// Of the first queue; each further one has twice as many, so that they stay few.
constexpr std::uint32_t kQueueEntries = 4096;
constexpr std::size_t kDoublings = 4;
// Where each connection has its own receives. More also because siw's library makes no second one.
constexpr std::uint32_t kQueueEntriesUnshared = 32768;
// Completions of one turn, so that other descriptors of the loop have theirs.
constexpr int kTurn = 256;
constexpr int kBatch = 32;

Result<net::Descriptor, Reason> watch_copy(net::EpollLoop& loop, int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
    return Failure{Reason::VerbsFailed};
  // rdma-core closes its own.
  net::UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy) return Failure{reason_of_device_error(errno)};
  return net::Descriptor::watch(loop, std::move(copy));
}

}  // namespace

LoopDevice::LoopDevice(std::shared_ptr<const VerbsFunctions> functions,
                       std::shared_ptr<DeviceRegistry> registry, net::EpollLoop& loop,
                       ibv_context* context)
    : functions_(std::move(functions)),
      registry_(std::move(registry)),
      loop_(loop),
      context_(context) {}

Result<std::shared_ptr<LoopDevice>, Reason> LoopDevice::open(
    std::shared_ptr<const VerbsFunctions> functions, std::shared_ptr<DeviceRegistry> registry,
    net::EpollLoop& loop, ibv_context* context, bool open_regions) {
  std::shared_ptr<LoopDevice> device(
      new LoopDevice(std::move(functions), std::move(registry), loop, context));
  const auto prepared = device->prepare(open_regions);
  if (!prepared) return Failure{prepared.error()};
  device->registry_->add(device);
  return device;
}

Result<Ok, Reason> LoopDevice::prepare(bool open_regions) {
  ibv_device_attr attributes{};
  ibv_port_attr port{};
  if (functions_->query_device(context_, &attributes) != 0 ||
      functions_->query_port(context_, 1, &port) != 0)
    return Failure{Reason::VerbsFailed};
  traits_ = traits_of(*context_->device, attributes, port.max_msg_sz);
  // What is open to one peer is in a domain that no other has.
  if (open_regions) traits_.windows = traits_.shared_queue = false;
  channel_ = functions_->create_comp_channel(context_);
  if (channel_ == nullptr) return Failure{reason_of_device_error(errno)};
  auto completions = watch_copy(loop_, channel_->fd);
  if (!completions) return Failure{completions.error()};
  completions_ = *std::move(completions);
  auto async_events = watch_copy(loop_, context_->async_fd);
  if (!async_events) return Failure{async_events.error()};
  async_events_ = *std::move(async_events);
  completions_.when_readable(static_cast<net::Reader&>(*this));
  async_events_.when_readable([this] { on_async_readable(); });
  return Ok{};
}

LoopDevice::~LoopDevice() {
  registry_->remove(*this);
  drain();
  for (const Queue& queue : queues_) functions_->destroy_cq(queue.queue);
  shared_domain_.reset();
  completions_ = {};
  async_events_ = {};
  if (channel_ != nullptr) functions_->destroy_comp_channel(channel_);
}

Result<std::shared_ptr<Domain>, Reason> LoopDevice::domain() {
  if (shared_domain_ != nullptr) return shared_domain_;
  auto made = Domain::make(*functions_, context_, traits_);
  if (made && traits_.windows && !traits_.iwarp) shared_domain_ = *made;
  return made;
}

Result<Completions, Reason> LoopDevice::reserve_completions(std::uint32_t entries) {
  for (Queue& queue : queues_) {
    if (queue.capacity - queue.reserved < entries) continue;
    queue.reserved += entries;
    return Completions{queue.queue, entries};
  }
  const std::uint32_t usual = traits_.shared_queue
                                  ? kQueueEntries << std::min(queues_.size(), kDoublings)
                                  : kQueueEntriesUnshared;
  const std::uint32_t capacity = std::min(std::max(entries, usual), traits_.max_completions);
  if (capacity < entries) return Failure{Reason::VerbsDeviceFull};
  Queue queue;
  queue.queue = functions_->create_cq(context_, static_cast<int>(capacity), nullptr, channel_, 0);
  if (queue.queue == nullptr) return Failure{reason_of_device_error(errno)};
  if (ibv_req_notify_cq(queue.queue, 0) != 0) {
    functions_->destroy_cq(queue.queue);
    return Failure{Reason::VerbsFailed};
  }
  queue.armed = true;
  queue.capacity = capacity;
  queue.reserved = entries;
  queues_.push_back(queue);
  return Completions{queue.queue, entries};
}

void LoopDevice::release_completions(Completions completions) {
  for (Queue& queue : queues_)
    if (queue.queue == completions.queue) queue.reserved -= completions.entries;
}

void LoopDevice::remove(std::uint32_t queue_pair) {
  // Who is told of its end and goes may be the last who uses this.
  if (draining_) kept_ = weak_from_this().lock();
  users_.erase(queue_pair);
  recent_[queue_pair % recent_.size()] = {};
  // What others have completed meanwhile keeps its order.
  std::array<ibv_wc, kBatch> batch;
  for (const Queue& queue : queues_) {
    for (;;) {
      const int count = ibv_poll_cq(queue.queue, kBatch, batch.data());
      if (count <= 0) break;
      backlog_.insert(backlog_.end(), batch.begin(), batch.begin() + count);
    }
  }
  std::erase_if(backlog_, [queue_pair](const ibv_wc& completion) {
    if (completion.qp_num != queue_pair) return false;
    orphan(completion);
    return true;
  });
  // The event of what was taken out is spent, or soon will be.
  if (!backlog_.empty()) later(&LoopDevice::drain);
}

void LoopDevice::orphan(const ibv_wc& completion) {
  if (!is_shared_receive(completion.wr_id)) return;
  RegisteredBlock* block = block_of(completion.wr_id);
  block->shared->consumed(block);
}

void LoopDevice::deliver(const ibv_wc& completion) {
  Recent& recent = recent_[completion.qp_num % recent_.size()];
  if (recent.user == nullptr || recent.queue_pair != completion.qp_num) {
    const auto user = users_.find(completion.qp_num);
    if (user == users_.end()) return orphan(completion);
    recent = {completion.qp_num, user->second};
  }
  recent.user->on_completion(completion);
}

LoopDevice::Polled LoopDevice::poll(int most) {
  bool any = false;
  std::array<ibv_wc, kBatch> batch;
  for (std::size_t i = 0; most > 0;) {
    // A user who leaves inside a delivery moves what others have completed to the backlog.
    if (!backlog_.empty()) {
      const ibv_wc completion = backlog_.front();
      backlog_.pop_front();
      deliver(completion);
      any = true;
      --most;
      continue;
    }
    if (i == queues_.size()) return any ? Polled::All : Polled::Nothing;
    const int count = ibv_poll_cq(queues_[i].queue, kBatch, batch.data());
    for (int k = 0; k < count; ++k) deliver(batch[static_cast<std::size_t>(k)]);
    any |= count > 0;
    most -= count;
    if (count < kBatch) ++i;
  }
  return Polled::Part;
}

void LoopDevice::take_events() {
  ibv_cq* told = nullptr;
  void* ignored = nullptr;
  while (functions_->get_cq_event(channel_, &told, &ignored) == 0) {
    functions_->ack_cq_events(told, 1);
    for (Queue& queue : queues_)
      if (queue.queue == told) queue.armed = false;
  }
  completions_.mark_unreadable();
}

bool LoopDevice::arm() {
  bool all = true;
  for (Queue& queue : queues_) {
    if (queue.armed) continue;
    queue.armed = true;
    all = false;
    // Without notification its connections would hang.
    if (ibv_req_notify_cq(queue.queue, 0) != 0) later(&LoopDevice::fail);
  }
  return all;
}

void LoopDevice::later(void (LoopDevice::*step)()) {
  loop_.post([weak = weak_from_this(), step] {
    if (const auto device = weak.lock()) (device.get()->*step)();
  });
}

void LoopDevice::on_readable() {
  draining_ = true;
  Polled polled = poll(kTurn);
  if (polled == Polled::Nothing) {
    take_events();
    // A completion between the last look and this one is told by nobody.
    if (!arm()) polled = poll(kTurn);
    if (polled == Polled::Part) later(&LoopDevice::drain);
  }
  draining_ = false;
  if (polled != Polled::Nothing) completions_.mark_read();
  completions_.when_readable(static_cast<net::Reader&>(*this));
  // May be the last of this.
  const auto kept = std::move(kept_);
}

void LoopDevice::drain() {
  if (draining_) return;
  const auto kept = weak_from_this().lock();
  draining_ = true;
  std::uint32_t most = 0;
  for (const Queue& queue : queues_) most = std::max(most, queue.capacity);
  if (poll(static_cast<int>(most + backlog_.size())) == Polled::Part) later(&LoopDevice::drain);
  draining_ = false;
  kept_.reset();
}

void LoopDevice::on_async_readable() {
  ibv_async_event event{};
  while (functions_->get_async_event(context_, &event) == 0) {
    const bool of_queue_pair = event.event_type <= IBV_EVENT_PATH_MIG_ERR
                                   ? event.event_type != IBV_EVENT_CQ_ERR
                                   : event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED;
    const std::uint32_t queue_pair = of_queue_pair ? event.element.qp->qp_num : 0;
    if (event.event_type == IBV_EVENT_PORT_ERR)
      trace(Reason::VerbsPortDown, functions_->get_device_name(context_->device));
    const Reason reason = reason_of_async(event.event_type);
    functions_->ack_async_event(&event);
    if (reason != Reason::None) registry_->tell(context_, queue_pair, reason);
  }
  async_events_.mark_unreadable();
  async_events_.when_readable([this] { on_async_readable(); });
}

void LoopDevice::on_async(std::uint32_t queue_pair, Reason reason) {
  if (queue_pair != 0 && users_.find(queue_pair) == users_.end()) return;
  drain();
  const auto all = users_;
  for (const auto& [number, user] : all)
    if ((queue_pair == 0 || number == queue_pair) && users_.count(number) != 0)
      user->on_device_failure(reason);
}

}  // namespace stag::fabric
