#include "cli/serve/listeners.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/reason.h"
#include "cli/serve/process.h"
#include "cli/serve/wanted_sockets.h"
#include "cli/support/log.h"
#include "cli/support/output.h"
#include "net/open_files.h"

namespace stag::cli {

using endpoint::Listener;
using endpoint::Transport;

namespace {

constexpr std::string_view kDeviceOptions = "--fabric verbs, --verbs-port";

std::string cannot_listen(const Address& at, std::string_view option, Reason why) {
  return fmt::format("cannot listen at {} ({}): {}", to_string(at), option, info(why).text);
}

}  // namespace

Result<Ok, std::string> Listeners::claim(const ServeOptions& options, ServedSockets& sockets) {
  if (const auto apart = sockets_are_apart(options); !apart) return apart;
  for (const WantedSocket& each : wanted_sockets(options))
    if (const auto claimed = sockets.claim(each.use, each.at); !claimed)
      return Failure{cannot_listen(each.at, each.option, claimed.error())};
  return Ok{};
}

Result<Ok, std::string> Listeners::reserve(const ServeOptions& options, ServedSockets& sockets) {
  if (const auto claimed = claim(options, sockets); !claimed) return claimed;
  for (const WantedSocket& each : wanted_sockets(options))
    if (const auto reserved = sockets.reserve(each.use, each.at); !reserved)
      return Failure{cannot_listen(each.at, each.option, reserved.error())};
  return Ok{};
}

std::shared_ptr<endpoint::Loops> Listeners::make_loops(const ServeOptions& options) {
  return std::make_shared<endpoint::Loops>(options.loops, options.busy_poll_us);
}

std::string Listeners::cannot_listen_at_device(const Address& at, Reason why) {
  return cannot_listen(at, kDeviceOptions, why);
}

Result<Ok, std::string> Listeners::open(const ExportLine& first, DevicePorts* ports) {
  loops_ = ports != nullptr ? ports->loops() : make_loops(options_);
  if (const auto started = start_capture(); !started) return started;
  for (const std::string& host : options_.hosts)
    if (const auto done = listen_at(host, first, ports); !done) return done;
  if (options_.rpcbind)
    if (const auto done = register_programs(); !done) return done;
  fmt::print("{}", ready_);
  std::fflush(stdout);
  return Ok{};
}

std::vector<Loop*> Listeners::loops() const {
  const auto all = loops_->all();
  return {all.begin(), all.end()};
}

void Listeners::change(const ServeOptions& now) {
  const ConnectionLimits most = now.limits.connections(net::open_files_limit(), addresses());
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    Listener& each = listeners_[i];
    each.allow(now.allow);
    each.limit_stalls(now.limits.stall_limit());
    each.limit_chunks(now.limits.max_chunk_bytes());
    each.limit_connections(served_[i].transport == rpc::TransportKind::Tcp ? most.tcp : most.rdma,
                           now.limits.connections_per_client());
  }
}

void Listeners::stop_accepting() {
  for (Listener& each : listeners_) each.stop_accepting();
}

void Listeners::close() {
  registered_ = nullptr;
  // At the same time, whatever their peers do.
  for (Listener& each : listeners_) each.begin_close();
  // The last Listener waits for the Calls, if the loops are nobody else's.
  loops_ = nullptr;
  listeners_.clear();
  end_capture();
}

// A predecessor that its time limit has ended may still be at the file for a moment.
Result<Ok, std::string> Listeners::start_capture() {
  constexpr Duration kMargin = std::chrono::seconds(10);
  const std::string& path = options_.observe.capture();
  if (path.empty()) return Ok{};
  const auto stopped = [path](const std::string& why) {
    log_notice(Event::CaptureStopped, path, why);
  };
  auto capture = CaptureFile::open(path, options_.observe.capture_max(), stopped,
                                   options_.take_over ? kMargin : Duration(0));
  if (!capture) return Failure{capture.error()};
  capture_ = *std::move(capture);
  tap_->add(capture_->queue());
  return Ok{};
}

void Listeners::end_capture() {
  const auto capture = std::exchange(capture_, nullptr);
  if (capture == nullptr) return;
  tap_->remove(*capture->queue());
  const CaptureQueue::Counts counts = capture->finish();
  offer_out(fmt::format("capture: {} frames, {} of them lost", counts.frames, counts.lost));
}

Result<Ok, std::string> Listeners::listen_at(const std::string& host, const ExportLine& first,
                                             DevicePorts* ports) {
  auto rdma = listen_rdma(host, ports);
  if (!rdma) return Failure{rdma.error()};
  auto tcp = listen({host, static_cast<std::uint16_t>(options_.tcp_port)},
                    listen_options(Transport::Tcp), "--tcp-port");
  if (!tcp) return Failure{tcp.error()};
  ReadyAt ready{host, {}, std::nullopt, tcp->address()};
  for (std::size_t i = 0; i < rdma->size(); ++i)
    ready.rdma.push_back({options_.fabrics[i], (*rdma)[i].address()});
  if (options_.udp) {
    auto udp = listen_udp(tcp->address());
    if (!udp) return Failure{udp.error()};
    ready.udp = udp->address();
    keep(*std::move(udp), rpc::TransportKind::Udp);
  }
  ready_ += ready_lines(ready, first);
  for (Listener& each : *rdma) keep(std::move(each), rpc::TransportKind::Rdma);
  keep(*std::move(tcp), rpc::TransportKind::Tcp);
  return Ok{};
}

Result<std::vector<Listener>, std::string> Listeners::listen_rdma(const std::string& host,
                                                                  DevicePorts* ports) const {
  std::vector<Listener> listeners;
  for (const std::string& fabric : options_.fabrics) {
    endpoint::ListenOptions options = listen_options(Transport::Rdma);
    options.verbs.device = options_.device;
    const bool verbs = fabric == "verbs";
    if (verbs) options.fabric = endpoint::FabricKind::Verbs;
    const std::uint32_t port = verbs ? options_.device_port() : options_.rdma_port;
    const Address at{host, static_cast<std::uint16_t>(port)};
    if (verbs && ports != nullptr) options.verbs_port = ports->take(at);
    auto made = listen(at, options, verbs ? kDeviceOptions : "--rdma-port");
    if (!made) return Failure{made.error()};
    listeners.push_back(*std::move(made));
  }
  return listeners;
}

Result<Listener, std::string> Listeners::listen_udp(const Address& tcp) const {
  Address at = tcp;
  if (options_.udp_port != 0) at.port = static_cast<std::uint16_t>(options_.udp_port);
  const endpoint::ListenOptions options = listen_options(Transport::Udp);
  auto udp = listen(at, options, kUdpOptions);
  // Where TCP took any free port, its number may be another program's on UDP.
  if (!udp && options_.udp_port == 0 && options_.tcp_port == 0) {
    at.port = 0;
    udp = listen(at, options, kUdpOptions);
  }
  return udp;
}

Result<Listener, std::string> Listeners::listen(const Address& at,
                                                const endpoint::ListenOptions& options,
                                                std::string_view option) const {
  Result<Listener, Reason> made = options.fabric == endpoint::FabricKind::Verbs
                                      ? endpoint::listen(server_, at, options)
                                      : listen_at_socket(at, options);
  if (made) return *std::move(made);
  return Failure{cannot_listen(at, option, made.error())};
}

Result<Listener, Reason> Listeners::listen_at_socket(const Address& at,
                                                     const endpoint::ListenOptions& options) const {
  const auto use =
      options.transport == Transport::Udp ? net::SocketUse::Datagram : net::SocketUse::Stream;
  auto socket = sockets_.open(use, at);
  if (!socket) return Failure{socket.error()};
  return endpoint::listen(server_, socket->release(), options);
}

endpoint::ListenOptions Listeners::listen_options(Transport transport) const {
  endpoint::ListenOptions options;
  options.transport = transport;
  options.rdma = options_.rdma;
  options.rdma.allow = options.tcp.allow = options.udp.allow = options_.allow;
  options.tap = tap_;
  options.loops = loops_;
  options_.limits.apply(options, net::open_files_limit(), addresses());
  options_.nfs4_limits.apply(options.tcp);
  return options;
}

void Listeners::keep(Listener listener, rpc::TransportKind transport) {
  served_.push_back({transport, listener.address()});
  listeners_.push_back(std::move(listener));
}

Result<Ok, std::string> Listeners::register_programs() {
  auto done = RegisteredPrograms::make(registrations_of(server_, served_, options_.rdma_netid),
                                       options_.state, loops_);
  if (!done) return Failure{done.error()};
  registered_ = *std::move(done);
  for (const std::string& line : registered_->summary()) fmt::print("registered: {}\n", line);
  return Ok{};
}

}  // namespace stag::cli
