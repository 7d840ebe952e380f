#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <thread>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/export_line.h"
#include "cli/log.h"
#include "cli/process.h"
#include "endpoint/listener.h"
#include "net/signals.h"
#include "nfs/client/url.h"
#include "nfs/server/server.h"
#include "rpc/server.h"
#include "vfs/memory/memory.h"
#include "vfs/posix/posix.h"

namespace stag::cli {
namespace {

using endpoint::Listener;
using endpoint::Transport;

constexpr std::uint32_t kMaxPort = 65535;
constexpr std::uint32_t kMaxThreads = 256;
constexpr std::uint32_t kUsualThreads = 4;  // at most, unless told

bool is_loopback(std::string_view host) {
  return host.starts_with("127.") || host == "::1" || host == "localhost";
}

class Serve final : public Command {
 public:
  About about() const override {
    return {"serve", "export folders, or memory, over RPC-over-RDMA and TCP",
            "  stag serve --export /data=/srv/data,ro --export /scratch=memory\n"
            "  stag serve --config /etc/stag.toml\n"};
  }
  void declare(Arguments& arguments) override;
  Exit run() override;

 private:
  // What is asked for is there.
  Exit check() const;
  Exit add_exports(nfs::NfsServer& nfs) const;
  Result<std::shared_ptr<vfs::FileSystem>, std::string> file_system(const ExportLine& line) const;
  Exit listen(rpc::Server& server);
  Exit listen_at(rpc::Server& server, const std::string& host,
                 const std::shared_ptr<endpoint::Loops>& loops);
  Result<Listener, std::string> listener(rpc::Server& server, Transport transport,
                                         const Address& at,
                                         const std::shared_ptr<endpoint::Loops>& loops) const;
  void announce(const Listener& rdma, const Listener& tcp, const std::string& host) const;
  void announce_exports() const;

  std::vector<std::string> export_texts_;
  std::vector<ExportLine> exports_;
  std::vector<std::string> hosts_;
  std::uint32_t rdma_port_ = endpoint::kRdmaPort;
  std::uint32_t tcp_port_ = endpoint::kTcpPort;
  std::uint32_t threads_ = std::clamp(std::thread::hardware_concurrency(), 1u, kUsualThreads);
  std::string fabric_ = "iwarp";
  bool rpcbind_ = false;
  std::string state_ = default_state_directory();
  std::string log_level_ = "warning";
  std::string log_format_ = "text";
  std::string metrics_;
  std::vector<Listener> listeners_;
};

void Serve::declare(Arguments& arguments) {
  arguments.texts("--export", export_texts_, "/name=DIR|memory[,OPTION]...",
                  "what to serve; options are those of exports(5): ro, rw, root_squash, "
                  "no_root_squash, all_squash, anonuid=N, anongid=N, secure, insecure");
  arguments.texts("--listen", hosts_, "ADDR",
                  "address to listen on [127.0.0.1]; 0.0.0.0 or :: for all. There is no "
                  "encryption: beyond this machine, trust the network");
  arguments.number("--rdma-port", rdma_port_, 0, kMaxPort,
                   "port of NFS over RPC-over-RDMA; 0 takes a free one");
  arguments.number("--tcp-port", tcp_port_, 0, kMaxPort,
                   "port of NFS and MOUNT over TCP; 0 takes a free one");
  arguments.choice("--fabric", fabric_, {"iwarp", "verbs"}, "where RDMA comes from");
  arguments.flag("--rpcbind,!--no-rpcbind", rpcbind_, "register with rpcbind [no]");
  arguments.text("--state", state_, "DIR",
                 "where handle keys and counters are kept [" + state_ + "]");
  arguments.number("--threads", threads_, 1, kMaxThreads, "threads that serve connections");
  arguments.config("--config",
                   "settings by the names of these options: export = [\"/data=/srv/data\"]");
  arguments.choice("--log-level", log_level_, {"debug", "info", "warning", "error", "off"},
                   "what is logged on standard error");
  arguments.choice("--log-format", log_format_, {"text", "json"}, "lines of text or of JSON");
  arguments.text("--metrics", metrics_, "ADDR:PORT", "where Prometheus finds counters");
}

Exit Serve::check() const {
  constexpr std::string_view kAbsent = "is not in this build; leave it out";
  if (fabric_ != "iwarp") return misused("--fabric verbs is not in this build; use iwarp");
  if (!metrics_.empty()) return misused(fmt::format("--metrics {}", kAbsent));
  if (rpcbind_)
    return misused(fmt::format(
        "--rpcbind {}, and name the ports in URLs: nfs://HOST:PORT/x?mountport=PORT", kAbsent));
  if (export_texts_.empty())
    return misused("nothing to serve; say what with --export /name=DIR or --export /name=memory");
  return Exit::Done;
}

Exit Serve::run() {
  if (const Exit exit = check(); exit != Exit::Done) return exit;
  for (const std::string& text : export_texts_) {
    Result<ExportLine, std::string> line = parse_export(text);
    if (!line) return misused(line.error());
    exports_.push_back(*std::move(line));
  }
  if (hosts_.empty()) hosts_.push_back("127.0.0.1");
  start_log(log_level_, log_format_ == "json" ? LogFormat::Json : LogFormat::Text);
  raise_open_files_limit();
  const Result<StateLock, std::string> lock = StateLock::take(state_);
  if (!lock) return failed(lock.error());
  const Result<nfs::ServerState, nfs::StateError> state = nfs::ServerState::open(state_);
  if (!state) return failed(state.error().message);
  nfs::NfsServer nfs(*state);
  if (const Exit exit = add_exports(nfs); exit != Exit::Done) return exit;
  rpc::Server server;
  nfs.add_programs(server);
  announce_exports();
  // Before anybody is told that it is ready.
  net::AsioLoop loop;
  const net::SignalWatch watch(loop, {SIGINT, SIGTERM}, [&loop](int) { loop.stop(); });
  const Exit exit = listen(server);
  if (exit == Exit::Done) loop.run();
  listeners_.clear();
  return exit;
}

Exit Serve::add_exports(nfs::NfsServer& nfs) const {
  for (const ExportLine& line : exports_) {
    const auto files = file_system(line);
    if (!files) return failed(files.error());
    const Result<Ok, nfs::ExportError> added = nfs.add_export(line.path, *files, line.options);
    if (!added) return misused(fmt::format("--export {}: {}", line.path, added.error().message));
  }
  return Exit::Done;
}

Result<std::shared_ptr<vfs::FileSystem>, std::string> Serve::file_system(
    const ExportLine& line) const {
  std::shared_ptr<vfs::FileSystem> files;
  if (line.folder.empty()) {
    files = std::make_shared<vfs::MemoryFileSystem>();
    return files;
  }
  vfs::PosixFileSystem::Options options;
  options.root = line.folder;
  options.state_directory = state_;
  auto opened = vfs::PosixFileSystem::open(options);
  if (!opened) return Failure{opened.error()};
  files = *std::move(opened);
  return files;
}

Exit Serve::listen(rpc::Server& server) {
  const auto loops = std::make_shared<endpoint::Loops>(threads_);
  for (const std::string& host : hosts_)
    if (const Exit exit = listen_at(server, host, loops); exit != Exit::Done) return exit;
  return Exit::Done;
}

Exit Serve::listen_at(rpc::Server& server, const std::string& host,
                      const std::shared_ptr<endpoint::Loops>& loops) {
  const auto port = [](std::uint32_t number) { return static_cast<std::uint16_t>(number); };
  auto rdma = listener(server, Transport::Rdma, {host, port(rdma_port_)}, loops);
  if (!rdma) return failed(rdma.error());
  auto tcp = listener(server, Transport::Tcp, {host, port(tcp_port_)}, loops);
  if (!tcp) return failed(tcp.error());
  announce(*rdma, *tcp, host);
  listeners_.push_back(*std::move(rdma));
  listeners_.push_back(*std::move(tcp));
  return Exit::Done;
}

Result<Listener, std::string> Serve::listener(rpc::Server& server, Transport transport,
                                              const Address& at,
                                              const std::shared_ptr<endpoint::Loops>& loops) const {
  endpoint::ListenOptions options;
  options.transport = transport;
  options.loops = loops;
  // One for RDMA and one for TCP at every address.
  const std::uint32_t most = connections_per_listener(open_files_limit(), 2 * hosts_.size());
  options.rdma.max_connections = std::min(options.rdma.max_connections, most);
  options.tcp.max_connections = std::min<std::size_t>(options.tcp.max_connections, most);
  Result<Listener, Reason> made = endpoint::listen(server, at, options);
  if (made) return *std::move(made);
  const bool tcp = transport == Transport::Tcp;
  return Failure{fmt::format("cannot listen at {} ({}): {}", to_string(at),
                             tcp ? "--tcp-port" : "--rdma-port", info(made.error()).text)};
}

void Serve::announce(const Listener& rdma, const Listener& tcp, const std::string& host) const {
  nfs::client::Url url;
  url.host = host == "0.0.0.0" || host == "::" ? host_name() : host;
  url.path = exports_.front().path;
  const std::uint16_t tcp_port = tcp.address().port;
  url.port = rdma.address().port;
  const std::string mount =
      tcp_port == endpoint::kTcpPort ? "" : fmt::format("?mountport={}", tcp_port);
  fmt::print("ready: RPC-over-RDMA  {}{}\n", to_string(url), mount);
  url.port = tcp_port;
  fmt::print("ready: TCP            {}?proto=tcp\n", to_string(url));
  std::fflush(stdout);
}

void Serve::announce_exports() const {
  for (const ExportLine& line : exports_)
    fmt::print("export: {} = {}{}\n", line.path, line.folder.empty() ? "memory" : line.folder,
               line.options.read_only ? ", read-only" : "");
  if (vfs::PosixFileSystem::serves_all_as_one())
    fmt::print("note: not run by root, so everything is done as user {}, whoever asks\n",
               geteuid());
  for (const std::string& host : hosts_)
    if (!is_loopback(host))
      fmt::print(
          "note: whoever reaches {} is believed who he says he is, and data is not "
          "encrypted; listen there in a trusted network only\n",
          host);
}

}  // namespace

std::unique_ptr<Command> make_serve() {
  return std::make_unique<Serve>();
}

}  // namespace stag::cli
