// RDMA-CM: ids, event channels, how connections begin and end.
#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "fabric/verbs/stub/stub_objects.h"

namespace stag::fabric::stub {
namespace {

// InfiniBand's CM messages: what a request leaves to its user, and an answer.
constexpr std::size_t kRequestData = 56, kReplyData = 196, kRejectData = 148;
// Why a request was rejected, in the numbers of InfiniBand's CM.
constexpr int kInvalidServiceId = 8, kStaleConnection = 10, kConsumerDefined = 28;

Id& id_of(rdma_cm_id* id) {
  return *static_cast<Id*>(id);
}
CmChannel& cm_channel_of(rdma_event_channel* channel) {
  return *static_cast<CmChannel*>(channel);
}

int failed(int error) {
  errno = error;
  return -1;
}

Endpoint endpoint_of(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address->sa_family == AF_INET6) {
    const auto* six = reinterpret_cast<const sockaddr_in6*>(address);
    inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof text);
    return {text, ntohs(six->sin6_port)};
  }
  const auto* four = reinterpret_cast<const sockaddr_in*>(address);
  inet_ntop(AF_INET, &four->sin_addr, text, sizeof text);
  return {text, ntohs(four->sin_port)};
}

void set_port_of(sockaddr* address, std::uint16_t port) {
  if (address->sa_family == AF_INET6)
    reinterpret_cast<sockaddr_in6*>(address)->sin6_port = htons(port);
  else
    reinterpret_cast<sockaddr_in*>(address)->sin_port = htons(port);
}

std::size_t size_of(const sockaddr* address) {
  return address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

Device* device_at(const std::string& host) {
  const Locked network;
  for (const auto& device : network->devices) {
    const auto& addresses = device->options.addresses;
    if (!device->removed && std::find(addresses.begin(), addresses.end(), host) != addresses.end())
      return device.get();
  }
  return nullptr;
}

void use_device(Id& id, Device& device) {
  id.device = &device;
  id.verbs = &device.context();
  id.port_num = 1;
}

rdma_event_channel* create_event_channel() {
  const Locked network;
  if (made_to_fail("rdma_create_event_channel")) return nullptr;
  if (network->forbidden || network->devices.empty()) {
    errno = network->forbidden ? EACCES : ENODEV;
    return nullptr;
  }
  auto* channel = new CmChannel();
  channel->fd = channel->signal.fd();
  ++network->objects;
  return channel;
}

void destroy_event_channel(rdma_event_channel* channel) {
  const Locked network;
  if (cm_channel_of(channel).ids != 0) misuse("an event channel was destroyed before its ids");
  --network->objects;
  delete &cm_channel_of(channel);
}

int get_cm_event(rdma_event_channel* its, rdma_cm_event** event) {
  const Locked network;
  CmChannel& channel = cm_channel_of(its);
  if (channel.events.empty()) {
    if (!channel.signal.nonblocking()) misuse("rdma_get_cm_event would block");
    return failed(EAGAIN);
  }
  CmEvent* next = channel.events.front();
  channel.events.pop_front();
  if (channel.events.empty()) channel.signal.clear();
  ++next->subject->unacknowledged;
  *event = next;
  return 0;
}

int ack_cm_event(rdma_cm_event* event) {
  const Locked network;
  auto* its = static_cast<CmEvent*>(event);
  --its->subject->unacknowledged;
  delete its;
  return 0;
}

Id* make_id(rdma_event_channel* channel, void* user) {
  const Locked network;
  auto* id = new Id();
  id->channel = channel;
  id->context = user;
  id->ps = RDMA_PS_TCP;
  ++id->events().ids;
  network->ids.insert(id);
  ++network->objects;
  return id;
}

int create_id(rdma_event_channel* channel, rdma_cm_id** id, void* user, rdma_port_space space) {
  const Locked network;
  if (made_to_fail("rdma_create_id")) return -1;
  if (channel == nullptr || space != RDMA_PS_TCP) return failed(EINVAL);
  *id = make_id(channel, user);
  return 0;
}

void forget_events(Id& id) {
  std::deque<CmEvent*>& events = id.events().events;
  for (CmEvent* event : std::deque(events)) {
    if (event->subject != &id && event->id != &id) continue;
    std::erase(events, event);
    // A request that nobody will see.
    Id* asked = event->event == RDMA_CM_EVENT_CONNECT_REQUEST ? &id_of(event->id) : nullptr;
    delete event;
    if (asked == nullptr || asked == &id) continue;
    if (asked->remote != nullptr) {
      report_cm(*asked->remote, RDMA_CM_EVENT_REJECTED, kInvalidServiceId);
      asked->remote->remote = nullptr;
    }
    --asked->events().ids;
    const Locked network;
    network->ids.erase(asked);
    --network->objects;
    delete asked;
  }
  if (events.empty()) id.events().signal.clear();
}

void leave_peer(Id& id) {
  Id* remote = std::exchange(id.remote, nullptr);
  if (remote == nullptr) return;
  remote->remote = nullptr;
  if (id.state == Id::State::Requested)
    report_cm(*remote, RDMA_CM_EVENT_REJECTED, kConsumerDefined);
  if (id.state == Id::State::Connected && remote->state == Id::State::Connected) {
    remote->state = Id::State::Ended;
    report_cm(*remote, RDMA_CM_EVENT_DISCONNECTED, 0);
  }
}

int destroy_id(rdma_cm_id* its) {
  const Locked network;
  Id& id = id_of(its);
  if (id.unacknowledged != 0) {
    misuse("rdma_destroy_id would wait for unacknowledged events");
    return failed(EBUSY);
  }
  if (id.qp != nullptr) misuse("an id was destroyed before its queue pair");
  leave_peer(id);
  forget_events(id);
  --id.events().ids;
  network->ids.erase(&id);
  --network->objects;
  delete &id;
  return 0;
}

int migrate_id(rdma_cm_id* its, rdma_event_channel* to) {
  const Locked network;
  if (made_to_fail("rdma_migrate_id")) return -1;
  Id& id = id_of(its);
  if (id.unacknowledged != 0) misuse("rdma_migrate_id would wait for unacknowledged events");
  std::deque<CmEvent*>& from = id.events().events;
  CmChannel& target = cm_channel_of(to);
  for (CmEvent* event : std::deque(from)) {
    if (event->subject != &id) continue;
    std::erase(from, event);
    target.events.push_back(event);
    target.signal.raise();
  }
  --id.events().ids;
  ++target.ids;
  id.channel = to;
  return 0;
}

bool taken(const Endpoint& wanted, int family) {
  const Locked network;
  return std::any_of(network->ids.begin(), network->ids.end(), [&](const Id* id) {
    const Endpoint its = endpoint_of(&id->route.addr.src_addr);
    return id->route.addr.src_addr.sa_family == family && its.port == wanted.port &&
           id->state == Id::State::Listening &&
           (its.host == wanted.host || its.wildcard() || wanted.wildcard());
  });
}

int bind_addr(rdma_cm_id* its, sockaddr* address) {
  const Locked network;
  if (made_to_fail("rdma_bind_addr")) return -1;
  Endpoint wanted = endpoint_of(address);
  if (!wanted.wildcard()) {
    Device* device = device_at(wanted.host);
    if (device == nullptr || network->gids_lacking) return failed(ENODEV);
    use_device(id_of(its), *device);
  }
  if (wanted.port == 0) wanted.port = network->next_port++;
  if (taken(wanted, address->sa_family)) return failed(EADDRINUSE);
  std::memcpy(&its->route.addr.src_storage, address, size_of(address));
  set_port_of(&its->route.addr.src_addr, wanted.port);
  return 0;
}

int listen(rdma_cm_id* its, int) {
  const Locked network;
  if (made_to_fail("rdma_listen")) return -1;
  id_of(its).state = Id::State::Listening;
  return 0;
}

int resolve_addr(rdma_cm_id* its, sockaddr* from, sockaddr* to, int) {
  const Locked network;
  if (made_to_fail("rdma_resolve_addr")) return -1;
  Id& id = id_of(its);
  if (from != nullptr && from->sa_family != to->sa_family) return failed(EINVAL);
  const bool reachable = device_at(endpoint_of(to).host) != nullptr;
  // Without an address of one's own it is the peer's: the network is one host.
  if (from == nullptr) from = to;
  Device* device = reachable ? device_at(endpoint_of(from).host) : nullptr;
  std::memcpy(&id.route.addr.dst_storage, to, size_of(to));
  if (device == nullptr || !device->options.port_active || network->gids_lacking) {
    report_cm(id, RDMA_CM_EVENT_ADDR_ERROR, device == nullptr ? -ENETUNREACH : -ENODEV);
    return 0;
  }
  use_device(id, *device);
  std::memcpy(&id.route.addr.src_storage, from, size_of(from));
  set_port_of(&id.route.addr.src_addr, network->next_port++);
  report_cm(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
  return 0;
}

int resolve_route(rdma_cm_id* its, int) {
  const Locked network;
  if (made_to_fail("rdma_resolve_route")) return -1;
  Id& id = id_of(its);
  const bool up = id.device->options.port_active;
  report_cm(id, up ? RDMA_CM_EVENT_ROUTE_RESOLVED : RDMA_CM_EVENT_ROUTE_ERROR,
            up ? 0 : -EHOSTUNREACH);
  return 0;
}

int create_qp(rdma_cm_id* its, ibv_pd* pd, ibv_qp_init_attr* wishes) {
  const Locked network;
  if (made_to_fail("rdma_create_qp")) return -1;
  if (its->verbs == nullptr || pd->context != its->verbs || its->qp != nullptr)
    return failed(EINVAL);
  its->qp = make_qp(id_of(its), pd, *wishes);
  its->pd = pd;
  return its->qp == nullptr ? -1 : 0;
}

bool destroy_qp_nobody_looks_at(rdma_cm_id* its) {
  const Locked network;
  if (id_of(its).queue_pair()->told > 0) return false;
  unmake_qp(*id_of(its).queue_pair());
  its->qp = nullptr;
  return true;
}

// As the library does (ibv_destroy_qp(3)), it waits for the acknowledgement of every event of the
// queue pair: who got one may look at the queue pair until then.
void destroy_qp(rdma_cm_id* its) {
  while (!destroy_qp_nobody_looks_at(its)) std::this_thread::yield();
}

Id* listener_of(const Endpoint& wanted, int family) {
  const Locked network;
  for (Id* id : network->ids) {
    const Endpoint its = endpoint_of(&id->route.addr.src_addr);
    if (id->state == Id::State::Listening && its.port == wanted.port &&
        (its.host == wanted.host ||
         (its.wildcard() && (id->route.addr.src_addr.sa_family == family || its.host == "::"))))
      return id;
  }
  return nullptr;
}

// What a CM message carries: on InfiniBand always as much as there is room for.
std::vector<std::byte> carried(const Device& device, const void* data, std::size_t length,
                               std::size_t padded) {
  const auto* bytes = static_cast<const std::byte*>(data);
  std::vector<std::byte> result(bytes, bytes + length);
  if (!device.options.iwarp) result.resize(padded);
  return result;
}

bool depths_fit(const Id& id, const rdma_conn_param& wishes) {
  const ibv_device_attr& limits = id.device->options.attributes;
  return wishes.initiator_depth <= limits.max_qp_init_rd_atom &&
         wishes.responder_resources <= limits.max_qp_rd_atom;
}

void queue_event(CmEvent* event) {
  CmChannel& channel = event->subject->events();
  channel.events.push_back(event);
  channel.signal.raise();
}

// The peer's point of view: what one side may initiate the other has to respond to.
CmEvent* made_event(Id& subject, rdma_cm_event_type type, const rdma_conn_param& wishes,
                    std::vector<std::byte> data) {
  auto* event = new CmEvent();
  event->subject = &subject;
  event->id = &subject;
  event->event = type;
  event->private_data = std::move(data);
  event->param.conn.private_data = event->private_data.data();
  event->param.conn.private_data_len = static_cast<std::uint8_t>(event->private_data.size());
  event->param.conn.responder_resources = wishes.initiator_depth;
  event->param.conn.initiator_depth = wishes.responder_resources;
  return event;
}

int connect(rdma_cm_id* its, rdma_conn_param* wishes) {
  const Locked network;
  if (made_to_fail("rdma_connect")) return -1;
  Id& id = id_of(its);
  const bool too_long = !id.device->options.iwarp && wishes->private_data_len > kRequestData;
  if (id.qp == nullptr || too_long || !depths_fit(id, *wishes)) return failed(EINVAL);
  id.state = Id::State::Connecting;
  id.wishes = *wishes;
  if (network->lost) return 0;
  const sockaddr& to = id.route.addr.dst_addr;
  Id* listener = listener_of(endpoint_of(&to), to.sa_family);
  if (listener == nullptr) {
    const bool iwarp = id.device->options.iwarp;
    report_cm(id, RDMA_CM_EVENT_REJECTED, iwarp ? -ECONNREFUSED : kInvalidServiceId);
    return 0;
  }
  if (network->stale_requests > 0 && !id.device->options.iwarp) {
    --network->stale_requests;
    report_cm(id, RDMA_CM_EVENT_REJECTED, kStaleConnection);
    return 0;
  }
  Device* there = device_at(endpoint_of(&to).host);
  if (there == nullptr) {
    report_cm(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
    return 0;
  }
  Id* request = make_id(listener->channel, listener->context);
  use_device(*request, *there);
  request->state = Id::State::Requested;
  request->route.addr.src_storage = id.route.addr.dst_storage;
  request->route.addr.dst_storage = id.route.addr.src_storage;
  request->remote = &id;
  id.remote = request;
  CmEvent* event =
      made_event(*listener, RDMA_CM_EVENT_CONNECT_REQUEST, *wishes,
                 carried(*id.device, wishes->private_data, wishes->private_data_len, kRequestData));
  event->id = request;
  event->listen_id = listener;
  queue_event(event);
  return 0;
}

int accept(rdma_cm_id* its, rdma_conn_param* wishes) {
  const Locked network;
  if (made_to_fail("rdma_accept")) return -1;
  Id& id = id_of(its);
  if (id.qp == nullptr || !depths_fit(id, *wishes)) return failed(EINVAL);
  // The peer has given up; the id learns of it.
  if (id.remote == nullptr || id.remote->qp == nullptr) {
    report_cm(id, RDMA_CM_EVENT_CONNECT_ERROR, -ECONNRESET);
    return 0;
  }
  Id& peer = *id.remote;
  // Each side says how often the other may try again.
  peer.queue_pair()->rnr_retry = wishes->rnr_retry_count;
  id.queue_pair()->rnr_retry = peer.wishes.rnr_retry_count;
  join(*id.queue_pair(), *peer.queue_pair());
  id.state = peer.state = Id::State::Connected;
  queue_event(
      made_event(peer, RDMA_CM_EVENT_ESTABLISHED, *wishes,
                 carried(*id.device, wishes->private_data, wishes->private_data_len, kReplyData)));
  id.awaits_ready_to_use = network->ready_to_use_lost && !id.device->options.iwarp;
  if (!id.awaits_ready_to_use) report_cm(id, RDMA_CM_EVENT_ESTABLISHED, 0);
  return 0;
}

int notify(rdma_cm_id* its, ibv_event_type type) {
  const Locked network;
  Id& id = id_of(its);
  if (type != IBV_EVENT_COMM_EST) return failed(EINVAL);
  if (!std::exchange(id.awaits_ready_to_use, false)) return failed(EISCONN);
  report_cm(id, RDMA_CM_EVENT_ESTABLISHED, 0);
  return 0;
}

int reject(rdma_cm_id* its, const void* data, std::uint8_t length) {
  const Locked network;
  if (made_to_fail("rdma_reject")) return -1;
  Id& id = id_of(its);
  if (id.state != Id::State::Requested) return failed(EINVAL);
  id.state = Id::State::Ended;
  Id* peer = std::exchange(id.remote, nullptr);
  if (peer == nullptr) return 0;
  peer->remote = nullptr;
  const bool iwarp = id.device->options.iwarp;
  report_cm(*peer, RDMA_CM_EVENT_REJECTED, iwarp ? -ECONNREFUSED : kConsumerDefined,
            carried(*id.device, data, length, kRejectData));
  return 0;
}

int disconnect(rdma_cm_id* its) {
  const Locked network;
  Id& id = id_of(its);
  if (id.qp == nullptr || id.state == Id::State::Idle) return failed(EINVAL);
  fail_qp(*id.queue_pair());
  end_connection(id);
  return 0;
}

}  // namespace

void end_connection(Id& id) {
  if (id.state != Id::State::Connected) return;
  id.state = Id::State::Ended;
  report_cm(id, RDMA_CM_EVENT_DISCONNECTED, 0);
  if (!id.device->options.iwarp) report_cm(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
  Id* remote = std::exchange(id.remote, nullptr);
  if (remote == nullptr) return;
  remote->remote = nullptr;
  if (remote->state != Id::State::Connected) return;
  remote->state = Id::State::Ended;
  report_cm(*remote, RDMA_CM_EVENT_DISCONNECTED, 0);
}

void report_cm(Id& id, rdma_cm_event_type type, int status, Bytes private_data) {
  CmEvent* event = made_event(id, type, {}, {private_data.begin(), private_data.end()});
  event->status = status;
  queue_event(event);
}

void fill_cm_functions(VerbsFunctions& functions) {
  functions.create_event_channel = create_event_channel;
  functions.destroy_event_channel = destroy_event_channel;
  functions.get_cm_event = get_cm_event;
  functions.ack_cm_event = ack_cm_event;
  functions.create_id = create_id;
  functions.destroy_id = destroy_id;
  functions.migrate_id = migrate_id;
  functions.bind_addr = bind_addr;
  functions.listen = listen;
  functions.resolve_addr = resolve_addr;
  functions.resolve_route = resolve_route;
  functions.create_qp = create_qp;
  functions.destroy_qp = destroy_qp;
  functions.connect = connect;
  functions.accept = accept;
  functions.reject = reject;
  functions.disconnect = disconnect;
  functions.notify = notify;
}

}  // namespace stag::fabric::stub
