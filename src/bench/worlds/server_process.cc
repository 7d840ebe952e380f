#include "bench/worlds/server_process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "endpoint/listener.h"
#include "nfs/server/server.h"
#include "nfs/v4/nfs4_server.h"
#include "rpc/server.h"
#include "vfs/memory/memory.h"
#include "vfs/posix/posix.h"

namespace stag::bench {
namespace {

using Ports = std::array<std::uint16_t, 2>;

// Enough for every figure, from one address.
constexpr std::uint32_t kMostConnections = 1u << 20;
constexpr const char* kLoopback = "127.0.0.1";

// The folder that is served, or nothing; gone with the object.
class Folder {
 public:
  explicit Folder(bool wanted) {
    std::error_code error;
    const char* tmpfs = "/dev/shm";
    const bool there = std::filesystem::is_directory(tmpfs, error);
    path_ = (there ? tmpfs : std::filesystem::temp_directory_path(error).string());
    path_ += "/stag-bench-XXXXXX";
    if (!wanted || mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~Folder() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }
  Folder(const Folder&) = delete;

  // Null when it cannot be opened.
  std::shared_ptr<vfs::FileSystem> open() const {
    vfs::PosixFileSystem::Options options;
    options.root = path_;
    auto opened = vfs::PosixFileSystem::open(options);
    return opened ? std::shared_ptr<vfs::FileSystem>(*std::move(opened)) : nullptr;
  }

 private:
  std::string path_;
};

bool serve_until_told(const ServerProcessOptions& options, const Folder& folder, int report,
                      int hold) {
  nfs::NfsServer nfs(nfs::ServerState::ephemeral(1));
  nfs::ExportOptions everybody;
  everybody.root_squash = false;
  std::shared_ptr<vfs::FileSystem> store = std::make_shared<vfs::MemoryFileSystem>();
  if (options.folder) store = folder.open();
  if (store == nullptr || !nfs.add_export("/", store, everybody)) return false;
  std::optional<nfs::nfs4::Nfs4Server> nfs4;
  rpc::Server server;
  nfs.add_programs(server);
  if (options.nfs4) nfs4.emplace(nfs.context(), nfs::nfs4::Nfs4Options{}).add_program(server);
  endpoint::ListenOptions listen;
  listen.loops = std::make_shared<endpoint::Loops>(options.loops, options.busy_poll_us);
  listen.rdma.transport.crc = options.crc;
  listen.rdma.max_connections = listen.rdma.max_connections_per_peer = kMostConnections;
  listen.tcp.max_connections = listen.tcp.max_connections_per_peer = kMostConnections;
  const bool verbs = !options.device_address.empty();
  listen.fabric = verbs ? endpoint::FabricKind::Verbs : endpoint::FabricKind::Iwarp;
  const Address anywhere{verbs ? options.device_address : kLoopback, 0};
  auto rdma = endpoint::listen(server, anywhere, listen);
  listen.transport = endpoint::Transport::Tcp;
  auto tcp = endpoint::listen(server, anywhere, listen);
  if (!rdma || !tcp) return false;
  const Ports ports{rdma->address().port, tcp->address().port};
  if (write(report, ports.data(), sizeof ports) != sizeof ports) return false;
  std::byte nothing;
  while (read(hold, &nothing, 1) < 0 && errno == EINTR) {
  }
  return true;
}

// The child: serves until the parent writes to the pipe or is gone, however it ends. A terminal's
// Ctrl-C reaches it too and means the parent.
[[noreturn]] void serve(const ServerProcessOptions& options, int report, int hold) {
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);
  raise_open_files();
  bool good = false;
  {
    const Folder folder(options.folder);
    good = serve_until_told(options, folder, report, hold);
  }
  _exit(good ? 0 : 1);
}

std::string cannot_listen(const std::string& device_address) {
  if (device_address.empty()) return "the server process could not listen on loopback";
  return "the server process could not listen at " + device_address +
         " through an RDMA device; stag devices shows which have which address";
}

}  // namespace

void raise_open_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

Result<ServerProcess, std::string> ServerProcess::start(const ServerProcessOptions& options) {
  int report[2], hold[2];
  if (pipe2(report, O_CLOEXEC) != 0 || pipe2(hold, O_CLOEXEC) != 0)
    return Failure{std::string("cannot make a pipe: ") + std::strerror(errno)};
  const pid_t pid = fork();
  if (pid < 0)
    return Failure{std::string("cannot start the server process: ") + std::strerror(errno)};
  if (pid == 0) {
    close(report[0]);
    close(hold[1]);
    serve(options, report[1], hold[0]);
  }
  close(report[1]);
  close(hold[0]);
  Ports ports{};
  const bool up = read(report[0], ports.data(), sizeof ports) == sizeof ports;
  close(report[0]);
  if (up) return ServerProcess(pid, hold[1], options.device_address, ports[0], ports[1]);
  close(hold[1]);
  waitpid(pid, nullptr, 0);
  return Failure{cannot_listen(options.device_address)};
}

ServerProcess::ServerProcess(ServerProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pipe_(std::exchange(other.pipe_, -1)),
      device_address_(std::move(other.device_address_)),
      rdma_port_(other.rdma_port_),
      tcp_port_(other.tcp_port_) {}

ServerProcess::~ServerProcess() {
  // Later processes have copies of this end, so that closing it says nothing to the child yet.
  const std::byte end{};
  if (pipe_ >= 0 && write(pipe_, &end, 1) >= 0) close(pipe_);
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
}

std::string ServerProcess::url(bool tcp) const {
  const std::string& address = device_address_;
  const bool colons = address.find(':') != std::string::npos;
  std::string url = "nfs://" + (address.empty() ? kLoopback
                                : colons        ? "[" + address + "]"
                                                : address);
  if (tcp) return url + ":" + std::to_string(tcp_port_) + "/?proto=tcp";
  url += ":" + std::to_string(rdma_port_) + "/?mountport=" + std::to_string(tcp_port_);
  return address.empty() ? url : url + "&fabric=verbs";
}

}  // namespace stag::bench
