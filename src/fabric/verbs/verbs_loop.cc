#include "fabric/verbs/verbs_loop.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "fabric/verbs/verbs_reason.h"

namespace stag::fabric {
namespace {

// Events of one turn, so that a peer that asks for many connections leaves the loop to the others:
// each request makes a queue pair and registers memory.
constexpr int kTurn = 16;

}  // namespace

CmUser& CmUser::nobody() {
  static class Nobody final : public CmUser {
    void on_cm(CmNotice) override {}
  } nobody;
  return nobody;
}

Result<std::shared_ptr<rdma_event_channel>, Reason> open_channel(
    const std::shared_ptr<const VerbsFunctions>& functions) {
  rdma_event_channel* made = functions->create_event_channel();
  if (made == nullptr) return Failure{reason_of_cm_error(errno)};
  std::shared_ptr<rdma_event_channel> channel(
      made, [functions](rdma_event_channel* each) { functions->destroy_event_channel(each); });
  const int flags = ::fcntl(channel->fd, F_GETFL);
  if (flags < 0 || ::fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) != 0)
    return Failure{Reason::VerbsFailed};
  return channel;
}

bool allows(const VerbsFunctions& functions, const VerbsOptions& options, ibv_context* context) {
  const std::string& only = options.device;
  return context == nullptr || only.empty() || functions.get_device_name(context->device) == only;
}

bool finds_allowed(const VerbsFunctions& functions, const VerbsOptions& options) {
  if (options.device.empty()) return true;
  int count = 0;
  ibv_context** devices = functions.get_devices(&count);
  if (devices == nullptr) return false;
  const bool found = std::any_of(devices, devices + count, [&](ibv_context* each) {
    return allows(functions, options, each);
  });
  functions.free_devices(devices);
  return found;
}

Result<std::shared_ptr<VerbsLoop>, Reason> VerbsLoop::of(
    const std::shared_ptr<VerbsShared>& shared, net::EpollLoop& loop,
    std::shared_ptr<rdma_event_channel> channel) {
  {
    const std::lock_guard lock(shared->mutex);
    const auto known = shared->loops.find(&loop);
    if (known != shared->loops.end())
      if (auto alive = known->second.lock()) return alive;
  }
  // Only this loop's thread makes its own.
  std::shared_ptr<VerbsLoop> made(new VerbsLoop(shared, loop));
  const auto opened = made->open(std::move(channel));
  if (!opened) return Failure{opened.error()};
  made->self_ = made;
  const std::lock_guard lock(shared->mutex);
  shared->loops[&loop] = made;
  return made;
}

Result<Ok, Reason> VerbsLoop::open(std::shared_ptr<rdma_event_channel> channel) {
  channel_ = std::move(channel);
  if (channel_ == nullptr) {
    auto opened = open_channel(shared_->functions);
    if (!opened) return Failure{opened.error()};
    channel_ = *std::move(opened);
  }
  UniqueFd copy(::fcntl(channel_->fd, F_DUPFD_CLOEXEC, 0));
  if (!copy) return Failure{reason_of_device_error(errno)};
  auto events = net::Descriptor::watch(loop_, std::move(copy));
  if (!events) return Failure{events.error()};
  events_ = *std::move(events);
  events_.when_readable([this] { on_readable(); });
  return Ok{};
}

VerbsLoop::~VerbsLoop() {
  {
    const std::lock_guard lock(shared_->mutex);
    const auto known = shared_->loops.find(&loop_);
    if (known != shared_->loops.end() && known->second.expired()) shared_->loops.erase(known);
  }
}

const VerbsFunctions& VerbsLoop::functions() const {
  return *shared_->functions;
}

const VerbsOptions& VerbsLoop::options() const {
  return shared_->options;
}

bool VerbsLoop::allows(ibv_context* context) const {
  return fabric::allows(functions(), options(), context);
}

bool VerbsLoop::finds_allowed() const {
  return fabric::finds_allowed(functions(), options());
}

Result<CmId, Reason> VerbsLoop::make_id(CmUser& user) {
  rdma_cm_id* id = nullptr;
  if (functions().create_id(channel_.get(), &id, &user, RDMA_PS_TCP) != 0)
    return Failure{reason_of_device_error(errno)};
  return CmId(shared_->functions, channel_, id);
}

CmId VerbsLoop::own_requested(rdma_cm_id* id) const {
  return {shared_->functions, channel_, id};
}

Result<std::shared_ptr<LoopDevice>, Reason> VerbsLoop::device(ibv_context* context) {
  if (auto known = devices_[context].lock()) return known;
  auto made = LoopDevice::open(shared_->functions, loop_, context, options().open_regions);
  if (made) devices_[context] = *made;
  return made;
}

void VerbsLoop::on_readable() {
  const auto alive = self_.lock();
  for (int left = kTurn; left > 0; --left) {
    rdma_cm_event* event = nullptr;
    if (functions().get_cm_event(channel_.get(), &event) != 0) {
      events_.mark_unreadable();
      break;
    }
    // What finds no memory is its user's loss alone.
    try {
      tell(*event);
    } catch (const std::bad_alloc&) {
      trace(Reason::OutOfMemory, "rdma", "connection event");
    }
  }
  // What is left of them in a later turn: the descriptor counts as readable then.
  events_.when_readable([this] { on_readable(); });
}

void VerbsLoop::tell(rdma_cm_event& event) {
  CmNotice notice;
  notice.type = event.event;
  notice.status = event.status;
  notice.id = event.id;
  const bool request = event.event == RDMA_CM_EVENT_CONNECT_REQUEST;
  auto* user = static_cast<CmUser*>((request ? event.listen_id : event.id)->context);
  const rdma_conn_param& conn = event.param.conn;
  if (conn.private_data != nullptr) {
    notice.private_size = conn.private_data_len;
    std::memcpy(notice.private_octets.data(), conn.private_data, conn.private_data_len);
  }
  notice.responder_resources = conn.responder_resources;
  notice.initiator_depth = conn.initiator_depth;
  functions().ack_cm_event(&event);
  const bool removal = notice.type == RDMA_CM_EVENT_DEVICE_REMOVAL;
  user->on_cm(notice);
  if (removal) close_removed_devices();
}

// Some drivers wait until nobody has the device open any more. rdma-core, which keeps it open,
// finds out that it was removed when it is asked which devices there are; not before the kernel has
// forgotten it.
void VerbsLoop::close_removed_devices() {
  closing_ = loop_.after(options().listen_again_after, [this] {
    int count = 0;
    ibv_context** devices = functions().get_devices(&count);
    if (devices != nullptr) functions().free_devices(devices);
  });
}

}  // namespace stag::fabric
