#include "fabric/verbs/stub/stub_network.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "fabric/verbs/stub/stub_objects.h"

namespace stag::fabric::stub {
namespace {

Network* the_network = nullptr;

// The one that was made first; null where there is none.
Qp* first_of(const std::set<Qp*>& all) {
  const auto first = std::min_element(
      all.begin(), all.end(), [](const Qp* a, const Qp* b) { return a->qp_num < b->qp_num; });
  return first != all.end() ? *first : nullptr;
}

int query_device(ibv_context* context, ibv_device_attr* attributes) {
  const Locked network;
  if (made_to_fail("ibv_query_device")) return ENOMEM;
  *attributes = device_of(context).options.attributes;
  return 0;
}

int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attributes) {
  const Locked network;
  if (port != 1) return EINVAL;
  if (made_to_fail("ibv_query_port")) return ENOMEM;
  *attributes = {};
  attributes->state = device_of(context).options.port_active ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  attributes->max_msg_sz = 8 << 20;
  attributes->link_layer = IBV_LINK_LAYER_ETHERNET;
  attributes->gid_tbl_len = 1;
  return 0;
}

const char* device_name(ibv_device* device) {
  return device->name;
}

// Null where the event is of something else.
Qp* queue_pair_of(Locked& network, const ibv_async_event& event) {
  if (event.event_type == IBV_EVENT_PORT_ERR) return nullptr;
  for (Qp* qp : network->queue_pairs)
    if (qp == event.element.qp) return qp;
  return nullptr;
}

int get_async_event(ibv_context* context, ibv_async_event* event) {
  Locked network;
  Context& its = *static_cast<Context*>(context);
  if (its.async_events.empty()) {
    errno = EAGAIN;
    return -1;
  }
  *event = its.async_events.front();
  its.async_events.pop_front();
  if (its.async_events.empty()) its.async_signal.clear();
  if (Qp* qp = queue_pair_of(network, *event)) ++qp->told;
  return 0;
}

void ack_async_event(ibv_async_event* event) {
  Locked network;
  if (Qp* qp = queue_pair_of(network, *event)) --qp->told;
}

ibv_context** get_devices(int* count) {
  const Locked network;
  if (made_to_fail("rdma_get_devices")) return nullptr;
  if (network->forbidden) {
    errno = EACCES;
    return nullptr;
  }
  for (const auto& device : network->devices)
    for (Context& context : device->contexts) context.known_removed = context.removed;
  auto** list = new ibv_context*[network->devices.size() + 1];
  std::size_t found = 0;
  for (const auto& device : network->devices)
    if (!device->removed) list[found++] = &device->context();
  list[found] = nullptr;
  *count = static_cast<int>(found);
  ++network->objects;
  return list;
}

void free_devices(ibv_context** list) {
  const Locked network;
  delete[] list;
  --network->objects;
}

ibv_device_attr usual_attributes() {
  ibv_device_attr attributes{};
  attributes.max_mr_size = ~std::uint64_t{0};
  attributes.max_qp = 1024;
  attributes.max_qp_wr = 32768;
  attributes.max_cq = 1024;
  attributes.max_cqe = 32767;
  attributes.max_mr = 1 << 16;
  attributes.max_pd = 1024;
  attributes.max_qp_rd_atom = attributes.max_qp_init_rd_atom = 128;
  attributes.max_srq = 256;
  attributes.max_srq_wr = 32768;
  attributes.phys_port_cnt = 1;
  return attributes;
}

}  // namespace

StubOptions rxe_like() {
  StubOptions options;
  options.name = "rxe0";
  options.attributes = usual_attributes();
  options.attributes.max_sge = options.attributes.max_sge_rd = options.attributes.max_srq_sge = 32;
  options.attributes.max_mw = 4096;
  options.attributes.device_cap_flags =
      IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS;
  return options;
}

StubOptions siw_like() {
  StubOptions options;
  options.name = "siw0";
  options.iwarp = true;
  options.attributes = usual_attributes();
  options.attributes.max_sge = options.attributes.max_srq_sge = 6;
  options.attributes.max_sge_rd = 1;
  options.attributes.device_cap_flags = IBV_DEVICE_MEM_MGT_EXTENSIONS;
  options.max_inline = 80;
  return options;
}

StubOptions bnxt_re_like() {
  StubOptions options = rxe_like();
  options.name = "bnxt_re0";
  options.attributes.max_sge = options.attributes.max_sge_rd = options.attributes.max_srq_sge = 6;
  options.windows_in_library = false;
  return options;
}

Signal::Signal() : fd_(::eventfd(0, EFD_CLOEXEC)) {
  STAG_CHECK(fd_ >= 0);
}

Signal::~Signal() {
  ::close(fd_);
}

void Signal::raise() {
  raised_ = true;
  const std::uint64_t one = 1;
  STAG_CHECK(::write(fd_, &one, sizeof one) == sizeof one);
}

void Signal::clear() {
  std::uint64_t count = 0;
  // Else the read would wait where its owner lets it.
  if (std::exchange(raised_, false)) STAG_CHECK(::read(fd_, &count, sizeof count) == sizeof count);
}

bool Signal::nonblocking() const {
  return (::fcntl(fd_, F_GETFL) & O_NONBLOCK) != 0;
}

Device::Device(StubOptions its) : options(std::move(its)) {
  device.node_type = options.iwarp ? IBV_NODE_RNIC : IBV_NODE_CA;
  device.transport_type = options.iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
  std::strncpy(device.name, options.name.c_str(), sizeof device.name - 1);
  plug_in();
}

void Device::plug_in() {
  removed = false;
  Context& made = contexts.emplace_back();
  made.owner = this;
  made.device = &device;
  made.async_fd = made.async_signal.fd();
  made.num_comp_vectors = 1;
  VerbsFunctions ignored;
  fill_memory_functions(ignored, made.ops);
  fill_queue_functions(ignored, made.ops);
  fill_qp_functions(ignored, made.ops);
}

Locked::Locked() : network_(*the_network), lock_(network_.mutex) {
  if (network_.inside++ == 0 && network_.when_inside != nullptr) network_.when_inside(true);
}

Locked::~Locked() {
  if (--network_.inside == 0 && network_.when_inside != nullptr) network_.when_inside(false);
}

Device& device_of(ibv_context* context) {
  return *static_cast<Context*>(context)->owner;
}

bool made_to_fail(const char* name) {
  const Locked network;
  const bool asked_for = network->failing_function == name;
  if (++network->calls != network->failing_call && !asked_for) return false;
  if (asked_for) network->failing_function.clear();
  network->failed = name;
  errno = ENOMEM;
  return true;
}

void misuse(const std::string& what) {
  const Locked network;
  network->misuses.push_back(what);
}

bool has_ids(const ibv_context* context) {
  const Locked network;
  return std::any_of(network->ids.begin(), network->ids.end(),
                     [context](const Id* id) { return id->verbs == context; });
}

void expect_open(ibv_context* context) {
  if (static_cast<Context*>(context)->removed && !has_ids(context))
    misuse("a removed device was used after its last id had gone");
}

void report_async(ibv_context* context, ibv_event_type type, Qp* qp) {
  ibv_async_event event{};
  event.event_type = type;
  if (qp != nullptr)
    event.element.qp = qp;
  else
    event.element.port_num = 1;
  Context& its = *static_cast<Context*>(context);
  its.async_events.push_back(event);
  its.async_signal.raise();
}

StubNetwork::StubNetwork(std::vector<StubOptions> devices) : network_(std::make_unique<Network>()) {
  STAG_CHECK(the_network == nullptr);
  for (StubOptions& options : devices)
    network_->devices.push_back(std::make_unique<Device>(std::move(options)));
  the_network = network_.get();
}

StubNetwork::~StubNetwork() {
  the_network = nullptr;
}

std::shared_ptr<const VerbsFunctions> StubNetwork::functions() const {
  auto functions = std::make_shared<VerbsFunctions>();
  ibv_context_ops ignored{};
  fill_memory_functions(*functions, ignored);
  fill_queue_functions(*functions, ignored);
  fill_qp_functions(*functions, ignored);
  fill_cm_functions(*functions);
  fill_listing_functions(*functions);
  functions->get_device_name = device_name;
  functions->query_device = query_device;
  functions->query_port = query_port;
  functions->get_async_event = get_async_event;
  functions->ack_async_event = ack_async_event;
  functions->get_devices = get_devices;
  functions->free_devices = free_devices;
  return functions;
}

void StubNetwork::hold() {
  Locked()->held = true;
}

void StubNetwork::release() {
  const Locked network;
  network->held = false;
  advance_all();
}

void StubNetwork::hold_reads(bool held) {
  const Locked network;
  network->reads_held = held;
  advance_all();
}

void StubNetwork::lose_packets(bool lost) {
  const Locked network;
  network->lost = lost;
  advance_all();
}

void StubNetwork::lose_ready_to_use(bool lost) {
  Locked()->ready_to_use_lost = lost;
}

void StubNetwork::find_stale_connections(int requests) {
  Locked()->stale_requests = requests;
}

void StubNetwork::forbid(bool forbidden) {
  Locked()->forbidden = forbidden;
}

void StubNetwork::lack_gids(bool lacking) {
  Locked()->gids_lacking = lacking;
}

void StubNetwork::set_port(bool active) {
  const Locked network;
  for (const auto& device : network->devices) {
    device->options.port_active = active;
    report_async(&device->context(), active ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR, nullptr);
  }
}

void StubNetwork::remove_devices() {
  const Locked network;
  for (const auto& device : network->devices) {
    device->removed = device->context().removed = true;
    report_async(&device->context(), IBV_EVENT_DEVICE_FATAL, nullptr);
  }
  for (Qp* qp : std::set(network->queue_pairs)) fail_qp(*qp);
  for (Id* id : network->ids) {
    if (id->device == nullptr) continue;
    if (id->state == Id::State::Listening) id->state = Id::State::Ended;
    report_cm(*id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
  }
}

std::size_t StubNetwork::open_removed_devices() const {
  const Locked network;
  std::size_t count = 0;
  for (const auto& device : network->devices)
    for (const Context& context : device->contexts)
      count += context.removed && (!context.known_removed || has_ids(&context)) ? 1 : 0;
  return count;
}

void StubNetwork::restore_devices() {
  const Locked network;
  for (const auto& device : network->devices)
    if (device->removed) device->plug_in();
}

void StubNetwork::starve_first_queue_pair() {
  const Locked network;
  if (Qp* const first = first_of(network->queue_pairs)) first->starved = true;
}

void StubNetwork::tell_of_first_queue_pair(ibv_event_type type) {
  const Locked network;
  if (Qp* const first = first_of(network->queue_pairs)) report_async(first->context, type, first);
}

void StubNetwork::tell_of_device(ibv_event_type type) {
  const Locked network;
  for (const auto& device : network->devices) report_async(&device->context(), type, nullptr);
}

void StubNetwork::tell_ids(rdma_cm_event_type type) {
  const Locked network;
  for (Id* id : network->ids)
    if (id->device != nullptr) report_cm(*id, type, 0);
}

void StubNetwork::begin_messages() {
  const Locked network;
  for (Qp* qp : network->queue_pairs) {
    auto* srq = static_cast<Srq*>(qp->srq);
    if (srq != nullptr && qp->state == IBV_QPS_RTS && !qp->taken && !srq->receives.empty())
      qp->taken = take_receive(*srq);
  }
}

void StubNetwork::end_messages() {
  const Locked network;
  for (Qp* qp : network->queue_pairs)
    if (qp->state == IBV_QPS_ERR && qp->taken) end_message(*qp);
}

std::size_t StubNetwork::queue_pairs() const {
  return Locked()->queue_pairs.size();
}

std::size_t StubNetwork::shared_receives() const {
  const Locked network;
  std::size_t count = 0;
  for (const Srq* srq : network->shared_queues) count += srq->receives.size();
  return count;
}

void StubNetwork::when_inside(void (*told)(bool)) {
  network_->when_inside = told;
}

void StubNetwork::fail_call(std::uint64_t n) {
  const Locked network;
  network->failed.clear();
  network->failing_call = n == 0 ? 0 : network->calls + n;
}

void StubNetwork::fail_next(std::string function) {
  const Locked network;
  network->failed.clear();
  network->failing_function = std::move(function);
}

std::uint64_t StubNetwork::calls() const {
  return Locked()->calls;
}

const std::string& StubNetwork::failed_call() const {
  return network_->failed;
}

std::size_t StubNetwork::objects() const {
  return Locked()->objects;
}

std::uint64_t StubNetwork::locked_bytes() const {
  const Locked network;
  std::uint64_t bytes = 0;
  for (const auto& device : network->devices) bytes += device->locked;
  return bytes;
}

std::size_t StubNetwork::remote_handles() const {
  constexpr int kRemote = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  const Locked network;
  std::size_t count = 0;
  for (const auto& device : network->devices) {
    count += device->windows.size();
    for (const auto& [key, region] : device->regions)
      if (region->valid && (region->access & kRemote) != 0) ++count;
  }
  return count;
}

const std::vector<std::string>& StubNetwork::misuses() const {
  return network_->misuses;
}

}  // namespace stag::fabric::stub
