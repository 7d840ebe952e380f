#include "fabric/verbs/verbs_connection.h"

#include <algorithm>
#include <cerrno>
#include <new>

#include "fabric/verbs/verbs_reason.h"
#include "net/socket_address.h"

namespace stag::fabric {
namespace {

// Seven means: as often as it takes. A peer without a receive for long is found by the stall limit.
constexpr std::uint8_t kRetries = 7;

Address address_of(const sockaddr& from) {
  const bool six = from.sa_family == AF_INET6;
  return net::SocketAddress(&from, six ? sizeof(sockaddr_in6) : sizeof(sockaddr_in)).address();
}

std::uint8_t depth(std::uint32_t wanted, std::uint32_t possible) {
  return static_cast<std::uint8_t>(std::min({wanted, possible, std::uint32_t{RDMA_MAX_RESP_RES}}));
}

}  // namespace

VerbsConnection::VerbsConnection(std::shared_ptr<VerbsLoop> loop, CmId id, bool active,
                                 const ConnectOptions& options)
    : loop_(std::move(loop)),
      id_(std::move(id)),
      active_(active),
      max_registration_(loop_->options().max_registration),
      anchor_(std::make_shared<Anchor>(Anchor{this})),
      credit_(options.receive),
      receives_max_(options.receives_max),
      stall_limit_(options.stall_limit),
      taking_(stall_limit_),
      answering_(stall_limit_) {
  id_.belongs_to(*this);
}

Result<std::unique_ptr<VerbsConnection>, Reason> VerbsConnection::make(
    std::shared_ptr<VerbsLoop> loop, CmId id, bool active, const ConnectOptions& options) {
  auto device = loop->device(id->verbs);
  if (!device) return Failure{device.error()};
  std::unique_ptr<VerbsConnection> made(
      new VerbsConnection(std::move(loop), std::move(id), active, options));
  QueuePairSizes sizes;
  sizes.sends = options.sends_max;
  sizes.receives = options.receives_max;
  sizes.receive_size = options.receive.size;
  // A peer that connects may go on for ever without sending.
  sizes.receives_later = !active;
  auto queue_pair = QueuePair::make(*std::move(device), made->id_, *made, sizes);
  if (!queue_pair) return Failure{queue_pair.error()};
  made->queue_pair_ = *std::move(queue_pair);
  if (made->loop_->options().open_regions)
    made->open_regions_ =
        std::make_unique<OpenRegions>(made->functions(), made->queue_pair_->domain().pd());
  const DeviceTraits& traits = made->queue_pair_->traits();
  if (traits.shared_queue) made->retired_ = std::make_shared<RetiredQueuePair>(made->loop_->loop());
  made->parameters_.max_registration = made->max_registration_;
  made->parameters_.remote_invalidation = traits.windows;
  made->parameters_.discards = false;
  made->parameters_.inbound_reads = depth(options.inbound_reads, traits.inbound_reads);
  made->parameters_.outbound_reads = depth(options.outbound_reads, traits.outbound_reads);
  return made;
}

VerbsConnection::~VerbsConnection() {
  anchor_->connection = nullptr;
  if (state_ == State::Ended) return;
  state_ = State::Ended;
  give_back_memory();
  release_id();
}

Result<Ok, Reason> VerbsConnection::set_up(const ConnectOptions& options, const CmNotice* request,
                                           OnSetup on_setup) {
  on_setup_ = std::move(on_setup);
  if (request != nullptr) {
    peer_ = address_of(id_->route.addr.dst_addr);
    private_data_.assign(request->private_data().begin(), request->private_data().end());
    parameters_.inbound_reads =
        std::min<std::uint32_t>(parameters_.inbound_reads, request->responder_resources);
    parameters_.outbound_reads =
        std::min<std::uint32_t>(parameters_.outbound_reads, request->initiator_depth);
  }
  rdma_conn_param wishes{};
  const std::vector<std::byte>& private_data = options.private_data_for(parameters_);
  wishes.private_data = private_data.data();
  wishes.private_data_len = static_cast<std::uint8_t>(private_data.size());
  wishes.responder_resources = static_cast<std::uint8_t>(parameters_.inbound_reads);
  wishes.initiator_depth = static_cast<std::uint8_t>(parameters_.outbound_reads);
  wishes.flow_control = 1;
  wishes.retry_count = wishes.rnr_retry_count = kRetries;
  const auto call = request != nullptr ? functions().accept : functions().connect;
  if (call(id_.get(), &wishes) != 0) return Failure{reason_of_connect_error(errno)};
  if (!active_) queue_pair_->on_connected();
  return Ok{};
}

void VerbsConnection::on_cm(CmNotice notice) {
  if (on_setup_) return on_setup_event(notice);
  const bool removed = notice.type == RDMA_CM_EVENT_DEVICE_REMOVAL;
  if (!removed && notice.type != RDMA_CM_EVENT_DISCONNECTED) return;
  if (state_ == State::Ended) return;
  // What arrived before is delivered before.
  queue_pair_->drain();
  end(removed ? Reason::VerbsDeviceRemoved : Reason::ConnectionClosed);
}

void VerbsConnection::on_setup_event(const CmNotice& notice) {
  Reason reason = Reason::None;
  switch (notice.type) {
    case RDMA_CM_EVENT_ESTABLISHED:
      established(notice);
      break;
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
    case RDMA_CM_EVENT_ADDR_CHANGE:
      return;
    default:
      reason = reason_of_setup(functions(), id_->verbs, notice.type, notice.status,
                               notice.private_data());
  }
  OnSetup on_setup = std::exchange(on_setup_, {});
  on_setup(reason);
}

void VerbsConnection::established(const CmNotice& notice) {
  peer_ = address_of(id_->route.addr.dst_addr);
  local_ = address_of(id_->route.addr.src_addr);
  where_ = to_string(peer_);
  queue_pair_->on_connected();
  if (!active_) return;
  private_data_.assign(notice.private_data().begin(), notice.private_data().end());
  std::uint32_t inbound = notice.responder_resources, outbound = notice.initiator_depth;
  // Drivers of iWARP do not agree which of the two is which here: cxgb4 says it one way, siw and
  // irdma the other.
  if (queue_pair_->traits().iwarp) inbound = outbound = std::min(inbound, outbound);
  parameters_.inbound_reads = std::min(parameters_.inbound_reads, inbound);
  parameters_.outbound_reads = std::min(parameters_.outbound_reads, outbound);
}

void VerbsConnection::later(void (VerbsConnection::*step)()) {
  loop_->loop().post([anchor = anchor_, step] {
    if (anchor->connection != nullptr) (anchor->connection->*step)();
  });
}

void VerbsConnection::start(Events& events) {
  STAG_CHECK(events_ == nullptr);
  events_ = &events;
  later(&VerbsConnection::begin_events);
}

void VerbsConnection::begin_events() try {
  while (!early_.empty() && state_ != State::Ended) {
    const Arrived arrived = early_.front();
    early_.pop_front();
    deliver(arrived);
  }
  if (state_ == State::Ended) return tell_end();
  pump();
  watch_peer();
} catch (const std::bad_alloc&) {
  end(Reason::OutOfMemory);
}

void VerbsConnection::add_receive_credit(ReceiveCredit more) {
  credit_.count += more.count;
  credit_.size = more.size;
}

}  // namespace stag::fabric
