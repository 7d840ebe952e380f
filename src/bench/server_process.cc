#include "bench/server_process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <utility>

#include "endpoint/listener.h"
#include "nfs/server/server.h"
#include "rpc/server.h"
#include "vfs/memory/memory.h"

namespace stag::bench {
namespace {

using Ports = std::array<std::uint16_t, 2>;

// The child: serves until the parent closes its end of the pipe.
[[noreturn]] void serve(const ServerProcessOptions& options, int report, int hold) {
  {
    nfs::NfsServer nfs(nfs::ServerState::ephemeral(1));
    nfs::ExportOptions everybody;
    everybody.root_squash = false;
    const auto exported = nfs.add_export("/", std::make_shared<vfs::MemoryFileSystem>(), everybody);
    rpc::Server server;
    nfs.add_programs(server);
    endpoint::ListenOptions listen;
    listen.loops = std::make_shared<endpoint::Loops>(1, options.busy_poll_us);
    listen.rdma.transport.crc = options.crc;
    auto rdma = endpoint::listen(server, {"127.0.0.1", 0}, listen);
    listen.transport = endpoint::Transport::Tcp;
    auto tcp = endpoint::listen(server, {"127.0.0.1", 0}, listen);
    if (!exported || !rdma || !tcp) _exit(1);
    const Ports ports{rdma->address().port, tcp->address().port};
    if (write(report, ports.data(), sizeof ports) != sizeof ports) _exit(1);
    std::byte nothing;
    while (read(hold, &nothing, 1) < 0 && errno == EINTR) {
    }
  }
  _exit(0);
}

}  // namespace

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
  ServerProcess process(pid, hold[1], ports[0], ports[1]);
  if (!up) return Failure{std::string("the server process could not listen on loopback")};
  return process;
}

ServerProcess::ServerProcess(ServerProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pipe_(std::exchange(other.pipe_, -1)),
      rdma_port_(other.rdma_port_),
      tcp_port_(other.tcp_port_) {}

ServerProcess::~ServerProcess() {
  if (pipe_ >= 0) close(pipe_);
  if (pid_ <= 0) return;
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
}

}  // namespace stag::bench
