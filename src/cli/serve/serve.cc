#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <thread>

#include "base/network.h"
#include "base/reason.h"
#include "cli/commands.h"
#include "cli/serve/announcement.h"
#include "cli/serve/callbacks.h"
#include "cli/serve/control.h"
#include "cli/serve/departure.h"
#include "cli/serve/export_set.h"
#include "cli/serve/id_mapping.h"
#include "cli/serve/kerberos.h"
#include "cli/serve/limits.h"
#include "cli/serve/locking.h"
#include "cli/serve/nfs4_limits.h"
#include "cli/serve/process.h"
#include "cli/serve/recovery.h"
#include "cli/serve/registration.h"
#include "cli/serve/reloads.h"
#include "cli/support/arguments.h"
#include "cli/support/log.h"
#include "cli/support/remote.h"
#include "endpoint/listener.h"
#include "net/signals.h"
#include "nfs/server/server.h"
#include "nfs/v4/nfs4_server.h"
#include "rpc/server.h"

namespace stag::cli {
namespace {

using endpoint::Listener;
using endpoint::Transport;

constexpr std::uint32_t kMaxPort = 65535;
constexpr std::uint32_t kMaxLoops = 256;
constexpr std::uint32_t kUsualLoops = 4;  // at most, unless told

class Serve final : public Command {
 public:
  About about() const override {
    return {"serve", "export folders, or memory, over RPC-over-RDMA and TCP",
            "  stag serve --export /data=/srv/data,ro --export /scratch=memory\n"
            "  stag serve --config /etc/stag.toml\n"};
  }
  void declare(Arguments& arguments) override;
  ConfigFile* config_file() override { return &config_; }
  Exit run() override;

 private:
  void declare_connections(Arguments& arguments);
  // What is asked for is there.
  Exit check();
  Exit check_networks();
  void choose_hosts();
  bool exports_are_in_file() const { return export_texts_.empty() && config_.given(); }
  // At least one.
  Result<std::vector<ExportLine>, std::string> read_exports() const;
  Result<std::vector<ExportLine>, std::string> exports_in_file() const;
  // From the exports to the end of the last call. Calls `leave` before it waits for that.
  Exit serve(StoreWatch& stores, std::vector<ExportLine> lines, const std::function<void()>& leave);
  // On SIGHUP; blocks.
  void reload(ExportSet& exports) const;
  Exit listen(rpc::Server& server);
  Exit listen_at(rpc::Server& server, const std::string& host,
                 const std::shared_ptr<endpoint::Loops>& loops);
  // One listener for each --fabric, before any other at that host.
  Result<std::vector<Listener>, std::string> listen_rdma(
      rpc::Server& server, const std::string& host,
      const std::shared_ptr<endpoint::Loops>& loops) const;
  Result<Listener, std::string> listen_udp(rpc::Server& server, const Address& tcp,
                                           const std::shared_ptr<endpoint::Loops>& loops) const;
  Exit register_programs(const rpc::Server& server, const std::shared_ptr<endpoint::Loops>& loops);
  void keep(Listener listener, rpc::TransportKind transport);
  endpoint::ListenOptions listen_options(Transport transport,
                                         const std::shared_ptr<endpoint::Loops>& loops) const;
  static Result<Listener, std::string> listener(rpc::Server& server, const Address& at,
                                                const endpoint::ListenOptions& options,
                                                std::string_view option);

  std::vector<std::string> export_texts_;
  std::vector<std::string> hosts_;
  std::uint32_t rdma_port_ = endpoint::kRdmaPort;
  std::uint32_t tcp_port_ = endpoint::kTcpPort;
  std::uint32_t loops_ = std::clamp(std::thread::hardware_concurrency(), 1u, kUsualLoops);
  std::uint32_t busy_poll_us_ = 0;
  std::uint32_t udp_port_ = 0;  // that of TCP
  std::uint32_t store_patience_ = 10;
  bool udp_ = true;
  bool nfs4_ = true;
  CallbackOptions callbacks_;
  RecoveryOptions recovery_;
  ControlSettings control_;
  IdMappingOptions id_mapping_;
  KerberosOptions kerberos_;
  std::vector<std::string> allow_texts_;
  std::vector<IpNetwork> allow_;
  Limits limits_;
  Nfs4Limits nfs4_limits_;
  rpc::rdma::ServerOptions rdma_;
  std::vector<std::string> fabrics_;
  std::optional<std::uint32_t> verbs_port_;
  std::string device_;
  bool rpcbind_ = false;
  std::string rdma_netid_{rpcbind::kRdma};
  std::string state_ = default_state_directory();
  std::string log_level_ = "warning";
  std::string log_format_ = "text";
  std::string metrics_;
  ConfigFile config_;
  ExportLine first_export_;  // for the URLs that are announced
  std::string ready_;        // said when all is
  std::vector<Listener> listeners_;
  std::vector<ServedAt> served_;
  std::unique_ptr<RegisteredPrograms> registered_;
};

void Serve::declare_connections(Arguments& arguments) {
  arguments.texts("--allow", allow_texts_, "NETWORK",
                  "clients that may connect, by address: 192.0.2.0/24, 2001:db8::/32 [all]");
  declare_rdma(arguments, rdma_.transport, rdma_.credits);
  arguments.texts("--fabric", fabrics_, "iwarp|verbs",
                  "where RDMA comes from: software iWARP over TCP, or RDMA devices (stag devices); "
                  "given twice, a listener of each [iwarp]");
  arguments.number("--verbs-port", verbs_port_, 1, kMaxPort,
                   "port of NFS over RDMA devices [that of --rdma-port]");
  arguments.text("--device", device_, "NAME", "the only RDMA device to be used [all]");
  limits_.declare(arguments);
  nfs4_limits_.declare(arguments);
}

void Serve::declare(Arguments& arguments) {
  arguments.texts(
      "--export", export_texts_, "/name=DIR|memory[,OPTION]...",
      "a folder, or memory, to export; options are those of exports(5): ro, rw, root_squash, "
      "no_root_squash, all_squash, anonuid=N, anongid=N, secure, insecure, "
      "sec=sys:krb5:krb5i:krb5p:none, fsid=N; at_once, offload: whether the threads that serve "
      "connections may use the folder's "
      "file system themselves [if it is on this machine]; nfs_only: no program here uses it; "
      "client=NETWORK[:OPTION]... for each network that may mount it [all]");
  arguments.texts("--listen", hosts_, "ADDR",
                  "address to listen on [127.0.0.1]; 0.0.0.0 or :: for all. Only sec=krb5p "
                  "encrypts: beyond this machine, use it or trust the network");
  arguments.number("--rdma-port", rdma_port_, 0, kMaxPort,
                   "port of NFS over RPC-over-RDMA; 0 takes a free one");
  arguments.number("--tcp-port", tcp_port_, 0, kMaxPort,
                   "port of NFS, MOUNT, NFSACL, NLM and NSM over TCP; 0 takes a free one");
  arguments.number("--udp-port", udp_port_, 0, kMaxPort,
                   "port of MOUNT, NLM and NSM over UDP, which some clients need; 0 takes the "
                   "number of --tcp-port");
  arguments.flag("--udp,!--no-udp", udp_, "serve MOUNT, NLM and NSM over UDP [yes]");
  arguments.flag("--nfs4,!--no-nfs4", nfs4_, "serve NFS 4.0, 4.1 and 4.2, too [yes]");
  callbacks_.declare(arguments);
  recovery_.declare(arguments);
  id_mapping_.declare(arguments);
  kerberos_.declare(arguments);
  declare_connections(arguments);
  arguments.flag("--rpcbind,!--no-rpcbind", rpcbind_,
                 "register every program with the rpcbind of this machine [no]");
  arguments.text("--rdma-netid", rdma_netid_, "NAME",
                 "netid of RPC-over-RDMA for rpcbind [rdma]; IPv6 gets a 6 behind it");
  arguments.text(
      "--state", state_, "DIR",
      "directory for handle keys and counters, outside of every export [/var/lib/stag; without "
      "root $XDG_STATE_HOME/stag or ~/.local/state/stag]");
  control_.declare(arguments);
  arguments.number("--loops", loops_, 1, kMaxLoops,
                   "threads that serve connections; each connection stays with one of them");
  arguments.number(
      "--busy-poll", busy_poll_us_, 0, 1'000'000,
      "microseconds that an idle thread polls for work before it blocks; 0: up to 50, while "
      "that saves time (adaptive polling)");
  arguments.number("--store-patience", store_patience_, 1, 3600,
                   "seconds that a folder's file system may take; beyond, the server logs it and "
                   "asks clients of the folder to try again later");
  arguments.config("--config", config_, {"export"},
                   "settings by the names of these options: export = [\"/data=/srv/data\"], or "
                   "tables [[export]]; the exports are read again on SIGHUP (SIGTERM and SIGINT "
                   "end the server, SIGUSR1 and SIGUSR2 do nothing)");
  arguments.choice("--log-level", log_level_, {"debug", "info", "warning", "error", "off"},
                   "least severe messages to log on standard error");
  arguments.choice("--log-format", log_format_, {"text", "json"}, "lines of text or of JSON");
  arguments.text("--metrics", metrics_, "ADDR:PORT",
                 "address for Prometheus to read counters from");
}

Exit Serve::check() {
  constexpr std::string_view kAbsent = "is not in this build; leave it out";
  if (fabrics_.empty()) fabrics_.push_back("iwarp");
  for (const std::string& fabric : fabrics_)
    if (fabric != "iwarp" && fabric != "verbs")
      return misused(fmt::format("--fabric '{}' is unknown; use iwarp or verbs", fabric));
  if (std::count(fabrics_.begin(), fabrics_.end(), fabrics_.front()) > 1)
    return misused("--fabric names each fabric once");
  if (!metrics_.empty()) return misused(fmt::format("--metrics {}", kAbsent));
  const bool word = rdma_netid_.find_first_of(" \t\n.") == std::string::npos;
  if (rdma_netid_.empty() || !word)
    return misused("--rdma-netid takes a word without dots, like rdma");
  return check_networks();
}

Exit Serve::check_networks() {
  for (const std::string& text : allow_texts_) {
    const std::optional<IpNetwork> network = IpNetwork::parse(text);
    if (!network)
      return misused(fmt::format(
          "--allow '{}' is no network; write one like 192.0.2.0/24 or 2001:db8::/32", text));
    allow_.push_back(*network);
  }
  const auto callbacks = callbacks_.check();
  return callbacks ? Exit::Done : misused(callbacks.error());
}

// A listener at :: serves IPv4 too, and so occupies the port of one at 0.0.0.0.
void Serve::choose_hosts() {
  if (hosts_.empty()) hosts_.push_back("127.0.0.1");
  if (std::find(hosts_.begin(), hosts_.end(), "::") != hosts_.end()) std::erase(hosts_, "0.0.0.0");
}

Result<std::vector<ExportLine>, std::string> Serve::exports_in_file() const {
  const Result<std::vector<Setting>, std::string> settings = config_.read();
  if (!settings) return Failure{settings.error()};
  for (const Setting& setting : *settings)
    if (config_.is_own(setting)) return parse_exports(config_.path(), setting);
  return std::vector<ExportLine>();
}

Result<std::vector<ExportLine>, std::string> Serve::read_exports() const {
  std::vector<ExportLine> lines;
  for (const std::string& text : export_texts_) {
    Result<ExportLine, std::string> line = parse_export(text);
    if (!line) return Failure{line.error()};
    lines.push_back(*std::move(line));
  }
  if (exports_are_in_file()) {
    Result<std::vector<ExportLine>, std::string> in_file = exports_in_file();
    if (!in_file) return in_file;
    lines = *std::move(in_file);
  }
  if (lines.empty())
    return Failure{
        std::string("nothing to serve; say what with --export /name=DIR or --export /name=memory")};
  return lines;
}

Exit Serve::run() {
  if (const Exit exit = check(); exit != Exit::Done) return exit;
  Result<std::vector<ExportLine>, std::string> lines = read_exports();
  if (!lines) return misused(lines.error());
  first_export_ = lines->front();
  choose_hosts();
  start_log(log_level_, log_format_ == "json" ? LogFormat::Json : LogFormat::Text);
  raise_open_files_limit();
  Result<StateLock, std::string> lock = StateLock::take(state_);
  if (!lock) return failed(lock.error());
  std::optional<StateLock> held(*std::move(lock));
  StoreWatch stores{std::chrono::seconds(store_patience_), limits_.waiting_bytes()};
  std::optional<Departure> departure(std::in_place, [&] {
    const std::string busy = stores.busy();
    complain("ends before the last calls have" +
             (busy.empty() ? "" : ": no answer from the file system below " + busy));
    held.reset();
  });
  const auto leave = [&] { departure->begin(stores.patience()); };
  const Exit exit = serve(stores, *std::move(lines), leave);
  leave();
  stores.finish();
  departure.reset();
  return exit;
}

Exit Serve::serve(StoreWatch& stores, std::vector<ExportLine> lines,
                  const std::function<void()>& leave) {
  const Result<nfs::ServerState, nfs::StateError> state = nfs::ServerState::open(state_);
  if (!state) return failed(state.error().message);
  nfs::NfsServer nfs(*state);
  ExportSet exports(nfs, stores, state_);
  if (const auto added = exports.replace(std::move(lines)); !added) {
    complain(added.error().sentence);
    return added.error().exit;
  }
  const auto recovery = Recovery::open(recovery_, state_, nfs4_);
  if (!recovery) return failed(recovery.error());
  nfs::nfs4::Nfs4Options nfs4_options = (*recovery)->nfs4_options();
  nfs4_limits_.apply(nfs4_options);
  callbacks_.apply(nfs4_options);
  const auto users = id_mapping_.open();
  if (!users) return failed(users.error());
  nfs4_options.id_map = users->owners;
  nfs::nfs4::Nfs4Server nfs4(nfs.context(), nfs4_options);
  const auto locking = Locking::open(nfs, state_, **recovery);
  if (!locking) return failed(locking.error());
  auto control = Control::open(control_, state_, nfs4, **locking);
  if (!control) return failed(control.error());
  auto kerberos = kerberos_.open(takes_kerberos(exports.lines()), users->principals);
  if (!kerberos) return failed(kerberos.error());
  rpc::Server server;
  if (*kerberos != nullptr) server.add(*std::move(kerberos));
  nfs.add_programs(server);
  if (nfs4_) nfs4.add_program(server);
  (*locking)->add_programs(server);
  fmt::print("{}", announcement(exports.lines(), hosts_));
  // Other servers log statistics on these signals; an operator who tries that must not end this
  // one.
  for (const int signal : {SIGUSR1, SIGUSR2}) std::signal(signal, SIG_IGN);
  // Before the ready line is printed.
  net::EpollLoop loop;
  const StoreRounds rounds(loop, stores);
  Reloads reloads(loop, [&] { reload(exports); });
  const net::SignalWatch watch(loop, {SIGINT, SIGTERM, SIGHUP}, [&](int signal) {
    if (signal == SIGHUP && exports_are_in_file())
      reloads.ask();
    else
      loop.stop();
  });
  const auto connector = callback_connector(loop);
  if (nfs4_ && callbacks_.wanted()) nfs4.start_callbacks(loop, connector.get());
  const Exit exit = listen(server);
  if (exit == Exit::Done) {
    (*locking)->start();
    loop.run();
  }
  leave();
  *control = nullptr;
  // While their files and the connections to tell of them are there.
  bool wound_up = false;
  nfs4.wind_up([&] {
    wound_up = true;
    loop.stop();
  });
  while (!wound_up) loop.run();
  registered_ = nullptr;
  listeners_.clear();
  nfs4.stop_callbacks();
  (*recovery)->drain();
  return exit;
}

void Serve::reload(ExportSet& exports) const {
  Result<std::vector<ExportLine>, std::string> lines = read_exports();
  if (!lines) return trace(Reason::ExportsReloadFailed, "SIGHUP", lines.error());
  if (const std::string why = kerberos_.obstacle(*lines); !why.empty())
    return trace(Reason::ExportsReloadFailed, "SIGHUP", why);
  const auto replaced = exports.replace(*std::move(lines));
  if (!replaced) return trace(Reason::ExportsReloadFailed, "SIGHUP", replaced.error().sentence);
  trace(Reason::NfsExportsChanged, "SIGHUP", *replaced);
  fmt::print("exports: {}\n", *replaced);
  std::fflush(stdout);
}

Exit Serve::listen(rpc::Server& server) {
  const auto loops = std::make_shared<endpoint::Loops>(loops_, busy_poll_us_);
  for (const std::string& host : hosts_)
    if (const Exit exit = listen_at(server, host, loops); exit != Exit::Done) return exit;
  if (const Exit exit = rpcbind_ ? register_programs(server, loops) : Exit::Done;
      exit != Exit::Done)
    return exit;
  fmt::print("{}", ready_);
  std::fflush(stdout);
  return Exit::Done;
}

Exit Serve::listen_at(rpc::Server& server, const std::string& host,
                      const std::shared_ptr<endpoint::Loops>& loops) {
  const auto port = [](std::uint32_t number) { return static_cast<std::uint16_t>(number); };
  auto rdma = listen_rdma(server, host, loops);
  if (!rdma) return failed(rdma.error());
  auto tcp = listener(server, {host, port(tcp_port_)}, listen_options(Transport::Tcp, loops),
                      "--tcp-port");
  if (!tcp) return failed(tcp.error());
  ReadyAt ready{host, {}, std::nullopt, tcp->address()};
  for (std::size_t i = 0; i < rdma->size(); ++i)
    ready.rdma.push_back({fabrics_[i], (*rdma)[i].address()});
  if (udp_) {
    auto udp = listen_udp(server, tcp->address(), loops);
    if (!udp) return failed(udp.error());
    ready.udp = udp->address();
    keep(*std::move(udp), rpc::TransportKind::Udp);
  }
  ready_ += ready_lines(ready, first_export_);
  for (Listener& each : *rdma) keep(std::move(each), rpc::TransportKind::Rdma);
  keep(*std::move(tcp), rpc::TransportKind::Tcp);
  return Exit::Done;
}

Result<std::vector<Listener>, std::string> Serve::listen_rdma(
    rpc::Server& server, const std::string& host,
    const std::shared_ptr<endpoint::Loops>& loops) const {
  std::vector<Listener> listeners;
  for (const std::string& fabric : fabrics_) {
    endpoint::ListenOptions options = listen_options(Transport::Rdma, loops);
    options.verbs.device = device_;
    const bool verbs = fabric == "verbs";
    if (verbs) options.fabric = endpoint::FabricKind::Verbs;
    const std::uint32_t port = verbs ? verbs_port_.value_or(rdma_port_) : rdma_port_;
    auto made = listener(server, {host, static_cast<std::uint16_t>(port)}, options,
                         verbs ? "--fabric verbs, --verbs-port" : "--rdma-port");
    if (!made) return Failure{made.error()};
    listeners.push_back(*std::move(made));
  }
  return listeners;
}

Result<Listener, std::string> Serve::listen_udp(
    rpc::Server& server, const Address& tcp, const std::shared_ptr<endpoint::Loops>& loops) const {
  Address at = tcp;
  if (udp_port_ != 0) at.port = static_cast<std::uint16_t>(udp_port_);
  const endpoint::ListenOptions options = listen_options(Transport::Udp, loops);
  constexpr std::string_view kOption = "--udp-port, or --no-udp";
  auto udp = listener(server, at, options, kOption);
  // Where TCP took any free port, its number may be another program's on UDP.
  if (!udp && udp_port_ == 0 && tcp_port_ == 0) {
    at.port = 0;
    udp = listener(server, at, options, kOption);
  }
  return udp;
}

void Serve::keep(Listener listener, rpc::TransportKind transport) {
  served_.push_back({transport, listener.address()});
  listeners_.push_back(std::move(listener));
}

Exit Serve::register_programs(const rpc::Server& server,
                              const std::shared_ptr<endpoint::Loops>& loops) {
  auto done =
      RegisteredPrograms::make(registrations_of(server, served_, rdma_netid_), state_, loops);
  if (!done) return failed(done.error());
  registered_ = *std::move(done);
  for (const std::string& line : registered_->summary()) fmt::print("registered: {}\n", line);
  std::fflush(stdout);
  return Exit::Done;
}

endpoint::ListenOptions Serve::listen_options(Transport transport,
                                              const std::shared_ptr<endpoint::Loops>& loops) const {
  endpoint::ListenOptions options;
  options.transport = transport;
  options.rdma = rdma_;
  options.rdma.allow = options.tcp.allow = options.udp.allow = allow_;
  options.loops = loops;
  limits_.apply(options, open_files_limit(), hosts_.size() * fabrics_.size());
  return options;
}

Result<Listener, std::string> Serve::listener(rpc::Server& server, const Address& at,
                                              const endpoint::ListenOptions& options,
                                              std::string_view option) {
  Result<Listener, Reason> made = endpoint::listen(server, at, options);
  if (made) return *std::move(made);
  return Failure{
      fmt::format("cannot listen at {} ({}): {}", to_string(at), option, info(made.error()).text)};
}

}  // namespace

std::unique_ptr<Command> make_serve() {
  return std::make_unique<Serve>();
}

}  // namespace stag::cli
