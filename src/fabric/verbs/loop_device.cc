#include "fabric/verbs/loop_device.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>

#include "fabric/verbs/device_registry.h"
#include "fabric/verbs/verbs_reason.h"
#include "fabric/verbs/work_id.h"

namespace stag::fabric {
namespace {

// Of the first queue; each further one has twice as many, so that they stay few.
constexpr std::uint32_t kQueueEntries = 4096;
constexpr std::size_t kDoublings = 4;
// Where each connection has its own receives. As many also because libsiw takes the offset at which
// the kernel would have it map a queue for an error where that is 0x90000 (SIW_INVAL_UOBJ_KEY of
// rdma-core 44): a first queue of so many entries covers that place, and nothing begins there.
constexpr std::uint32_t kQueueEntriesUnshared = 32768;
// Completions of one turn, so that other descriptors of the loop have theirs.
constexpr int kTurn = 256;

Result<net::Descriptor, Reason> watch_copy(net::EpollLoop& loop, int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
    return Failure{Reason::VerbsFailed};
  // rdma-core closes its own.
  UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy) return Failure{reason_of_device_error(errno)};
  return net::Descriptor::watch(loop, std::move(copy));
}

}  // namespace

LoopDevice::LoopDevice(std::shared_ptr<const VerbsFunctions> functions, net::EpollLoop& loop,
                       ibv_context* context)
    : functions_(std::move(functions)),
      registry_(DeviceRegistry::of_process()),
      loop_(loop),
      context_(context) {}

Result<std::shared_ptr<LoopDevice>, Reason> LoopDevice::open(
    std::shared_ptr<const VerbsFunctions> functions, net::EpollLoop& loop, ibv_context* context,
    bool open_regions) {
  std::shared_ptr<LoopDevice> device(new LoopDevice(std::move(functions), loop, context));
  const auto prepared = device->prepare(open_regions);
  if (!prepared) return Failure{prepared.error()};
  device->registry_.add(device);
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
  const auto tried = try_windows(*functions_, context_, traits_);
  if (!tried) return tried;
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
  registry_.remove(*this);
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
  if (made && traits_.windows && !traits_.iwarp) {
    (*made)->keep_regions();
    shared_domain_ = *made;
  }
  return made;
}

Result<Completions, Reason> LoopDevice::reserve_completions(std::uint32_t entries) {
  for (Queue& queue : queues_) {
    if (queue.capacity - queue.reserved < entries) continue;
    make_backlog_room(entries);
    queue.reserved += entries;
    return Completions{queue.queue, entries};
  }
  const std::uint32_t usual = traits_.shared_queue
                                  ? kQueueEntries << std::min(queues_.size(), kDoublings)
                                  : kQueueEntriesUnshared;
  const std::uint32_t capacity = std::min(std::max(entries, usual), traits_.max_completions);
  if (capacity < entries) return Failure{Reason::VerbsDeviceFull};
  make_backlog_room(entries);
  queues_.reserve(queues_.size() + 1);
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

void LoopDevice::make_backlog_room(std::uint32_t more) {
  std::size_t all = more;
  for (const Queue& queue : queues_) all += queue.reserved;
  if (all > backlog_.capacity()) backlog_.reserve(std::max(all, 2 * backlog_.capacity()));
}

void LoopDevice::release_completions(Completions completions) {
  for (Queue& queue : queues_)
    if (queue.queue == completions.queue) queue.reserved -= completions.entries;
}

void LoopDevice::replace(std::uint32_t queue_pair, QueuePairUser& user) {
  recent_[queue_pair % recent_.size()] = {};
  const auto known = users_.find(queue_pair);
  if (known != users_.end()) known->second.user = &user;
}

void LoopDevice::remove(std::uint32_t queue_pair) {
  // A user that is told of its end and goes may be the last one of this device.
  if (draining_) kept_ = weak_from_this().lock();
  users_.erase(queue_pair);
  recent_[queue_pair % recent_.size()] = {};
  // What others have completed meanwhile keeps its order. Asks for no memory: connections end here.
  const auto delivered = static_cast<std::ptrdiff_t>(backlog_.size() - backlog_left_);
  backlog_.erase(backlog_.begin(), backlog_.begin() + delivered);
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
  backlog_left_ = backlog_.size();
  // The event of what was taken out is spent, or soon will be.
  if (backlog_left_ != 0) later(&LoopDevice::go_on);
}

void LoopDevice::orphan(const ibv_wc& completion) {
  if (!is_shared_receive(completion.wr_id)) return;
  RegisteredBlock* block = block_of(completion.wr_id);
  block->shared->consumed(block);
}

[[gnu::always_inline]] inline void LoopDevice::deliver(const ibv_wc& completion) {
  Recent& recent = recent_[completion.qp_num % recent_.size()];
  if (recent.user == nullptr || recent.queue_pair != completion.qp_num) {
    const auto user = users_.find(completion.qp_num);
    if (user == users_.end()) return orphan(completion);
    recent = {completion.qp_num, user->second.user};
  }
  try {
    recent.user->on_completion(completion);
  } catch (const std::bad_alloc&) {
    on_out_of_memory(completion.qp_num);
  }
}

// Without memory for its completion a user cannot go on; the others do.
void LoopDevice::on_out_of_memory(std::uint32_t queue_pair) {
  const auto user = users_.find(queue_pair);
  if (user != users_.end()) user->second.user->on_device_failure(Reason::OutOfMemory);
}

// A user who leaves inside a delivery moves what others have completed to the backlog: it is older
// than what is in the queues.
void LoopDevice::deliver_backlog() {
  const ibv_wc completion = backlog_[backlog_.size() - backlog_left_];
  if (--backlog_left_ == 0) backlog_.clear();
  deliver(completion);
}

[[gnu::always_inline]] inline int LoopDevice::deliver_batch(const Queue& queue) {
  std::array<ibv_wc, kBatch> batch;
  const int count = ibv_poll_cq(queue.queue, kBatch, batch.data());
  for (int i = 0; i < count; ++i) deliver(batch[static_cast<std::size_t>(i)]);
  return std::max(count, 0);
}

LoopDevice::Polled LoopDevice::poll(int most) {
  bool any = false;
  // A batch of each queue in turn, so that none waits for another one's end. A user that gets a
  // completion may post again meanwhile: that costs a look here, and a system call in the next
  // turn.
  for (std::size_t emptied = 0; most > 0;) {
    int count = 1;
    if (backlog_left_ != 0) {
      deliver_backlog();
    } else {
      if (emptied == queues_.size()) return any ? Polled::All : Polled::Nothing;
      if (next_queue_ >= queues_.size()) next_queue_ = 0;
      count = deliver_batch(queues_[next_queue_++]);
      emptied = count == 0 ? emptied + 1 : 0;
    }
    any |= count > 0;
    most -= count;
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
    if (polled == Polled::Part) later(&LoopDevice::go_on);
  }
  draining_ = false;
  if (polled != Polled::Nothing) completions_.mark_read();
  completions_.when_readable(static_cast<net::Reader&>(*this));
  // May be the last of this.
  const auto kept = std::move(kept_);
}

void LoopDevice::go_on() {
  if (draining_) return;
  const auto kept = weak_from_this().lock();
  draining_ = true;
  if (poll(kTurn) == Polled::Part) later(&LoopDevice::go_on);
  draining_ = false;
  kept_.reset();
}

void LoopDevice::drop_unused_receives_later() noexcept {
  try {
    later(&LoopDevice::drop_unused_receives);
  } catch (const std::bad_alloc&) {
    // With the next one.
  }
}

void LoopDevice::drop_unused_receives() {
  if (shared_domain_ == nullptr || draining_) return;
  while (const auto unused = shared_domain_->take_unused_receives())
    release_completions(unused->completions);
}

void LoopDevice::drain(ibv_cq* only) {
  if (draining_) return;
  const auto kept = weak_from_this().lock();
  draining_ = true;
  for (std::size_t i = 0; i < queues_.size(); ++i)
    if (only == nullptr || queues_[i].queue == only) drain(queues_[i]);
  draining_ = false;
  if (backlog_left_ != 0) later(&LoopDevice::go_on);
  kept_.reset();
}

void LoopDevice::drain(Queue queue) {
  int count = kBatch;
  // No more than was there when this began, however fast more comes.
  for (std::uint32_t taken = 0; taken < queue.capacity && count == kBatch; taken += kBatch) {
    while (backlog_left_ != 0) deliver_backlog();
    count = deliver_batch(queue);
  }
  while (backlog_left_ != 0) deliver_backlog();
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
    // Only compared afterwards: it may be gone by then.
    const ibv_srq* const low =
        event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED ? event.element.srq : nullptr;
    functions_->ack_async_event(&event);
    if (low != nullptr) registry_.tell_receives_low(context_, low);
    if (reason != Reason::None) registry_.tell(context_, queue_pair, reason);
  }
  async_events_.mark_unreadable();
  async_events_.when_readable([this] { on_async_readable(); });
}

void LoopDevice::on_receives_low(const ibv_srq* queue) {
  drain();
  if (shared_domain_ == nullptr) return;
  if (SharedReceives* const receives = shared_domain_->receives_of(queue)) receives->on_low();
}

void LoopDevice::on_async(std::uint32_t queue_pair, Reason reason) {
  if (queue_pair != 0 && users_.find(queue_pair) == users_.end()) return;
  drain();
  // A user that is told may leave, and so may others; none is told twice. Asks for no memory.
  const std::uint32_t failure = ++failures_;
  const auto is_due = [&](const auto& known) {
    return (queue_pair == 0 || known.first == queue_pair) && known.second.failures_told != failure;
  };
  for (;;) {
    const auto next = std::find_if(users_.begin(), users_.end(), is_due);
    if (next == users_.end()) return;
    next->second.failures_told = failure;
    next->second.user->on_device_failure(reason);
  }
}

}  // namespace stag::fabric
