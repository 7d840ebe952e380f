// What `stag serve` does with what it is not told.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/support/arguments.h"
#include "endpoint/client.h"
#include "nfs/proto/nfs3.h"
#include "rpc/gss/rpcsec_gss.h"
#include "testing/fake_mechanism.h"
#include "testing/proves.h"

namespace stag::cli {
namespace {

// `stag serve` with these arguments, in a process of its own.
class ServeProcess {
 public:
  explicit ServeProcess(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"stag", "serve"});
    std::array<int, 2> pipe{};
    if (::pipe(pipe.data()) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(pipe[1], STDOUT_FILENO);
      std::vector<char*> argv;
      for (std::string& argument : arguments) argv.push_back(argument.data());
      std::vector<std::unique_ptr<Command>> commands;
      commands.push_back(make_serve());
      const int count = static_cast<int>(argv.size());
      ::_exit(static_cast<int>(run_command_line(count, argv.data(), std::move(commands))));
    }
    ::close(pipe[1]);
    output_ = ::fdopen(pipe[0], "r");
  }
  ~ServeProcess() {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
    std::fclose(output_);
  }
  ServeProcess(const ServeProcess&) = delete;
  ServeProcess& operator=(const ServeProcess&) = delete;

  // The next line that begins like this; empty when there is none.
  std::string line(const std::string& begin) {
    std::array<char, 512> text{};
    while (std::fgets(text.data(), text.size(), output_) != nullptr)
      if (std::string(text.data()).rfind(begin, 0) == 0) return text.data();
    return {};
  }

 private:
  pid_t pid_ = -1;
  FILE* output_ = nullptr;
};

TEST(Serve, listens_on_the_registered_port_of_NFS_over_RDMA_unless_told) {
  PROVES("R8166-5-a", "R8267-6.3-a");
  // An address of this machine at which nobody else listens.
  const auto number = static_cast<unsigned>(::getpid());
  const std::string host =
      "127.77." + std::to_string(number >> 8 & 0xff) + "." + std::to_string(number & 0xff);
  const std::string state = ::testing::TempDir() + "stag_serve_" + std::to_string(number);
  {
    ServeProcess server(
        {"--nfs4", "--export", "/x=memory", "--listen", host, "--tcp-port", "0", "--state", state});
    const std::string ready = server.line("ready: RPC-over-RDMA");
    EXPECT_NE(ready.find("nfs://" + host + ":20049/x"), std::string::npos) << ready;
  }
  std::filesystem::remove_all(state);
}

// An address of this machine at which only a test of its own listens.
std::string own_address() {
  const auto number = static_cast<unsigned>(::getpid());
  return "127.78." + std::to_string(number >> 8 & 0xff) + "." + std::to_string(number & 0xff);
}

std::string temporary(const std::string& name) {
  return ::testing::TempDir() + "stag_serve_" + std::to_string(::getpid()) + name;
}

// A keytab with a key of nfs/localhost@STAG.TEST that no KDC knows.
void write_keytab(const std::string& path) {
  const auto number = [](std::uint32_t value, int bytes) {
    std::string out;
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
      out.push_back(static_cast<char>(value >> shift & 0xff));
    return out;
  };
  const auto counted = [&](const std::string& text) {
    return number(static_cast<std::uint32_t>(text.size()), 2) + text;
  };
  constexpr std::uint32_t kPrincipal = 1, kAes256 = 18;
  const std::string entry = number(2, 2) + counted("STAG.TEST") + counted("nfs") +
                            counted("localhost") + number(kPrincipal, 4) + number(0, 4) +
                            number(1, 1) + number(kAes256, 2) + counted(std::string(32, 'k'));
  std::ofstream(path, std::ios::binary)
      << number(0x0502, 2) << number(static_cast<std::uint32_t>(entry.size()), 4) << entry;
}

// Why a context cannot be set up at this address with a token that is none.
Reason refusal(const std::string& host, std::uint16_t port, endpoint::Transport transport) {
  endpoint::ConnectOptions options;
  options.connector.transport = transport;
  auto realm = std::make_shared<testing::FakeRealm>();
  options.credentials = rpc::Credentials::secured(
      rpc::rpcsec_gss({.initiator = std::make_shared<testing::FakeInitiator>(realm)}));
  auto client = endpoint::connect({host, port}, std::move(options));
  if (!client) return client.error().reason;
  const auto answer = client->ping(nfs::v3::NFS_PROGRAM, nfs::v3::NFS_V3);
  return answer ? Reason::None : answer.error().reason;
}

TEST(Serve, sets_contexts_of_RPCSEC_GSS_up_by_TCP_on_port_2049_as_by_RDMA) {
  PROVES("R8166-8.2.2.1-a");
  const std::string host = own_address(), state = temporary(".k"), keytab = temporary(".keytab");
  write_keytab(keytab);
  {
    ServeProcess server(
        {"--export", "/x=memory,sec=krb5", "--listen", host, "--keytab", keytab, "--state", state});
    EXPECT_FALSE(server.line("ready: TCP").empty());
    // The mechanism has looked at the token.
    EXPECT_EQ(refusal(host, 2049, endpoint::Transport::Tcp), Reason::GssServerRefused);
    EXPECT_EQ(refusal(host, 20049, endpoint::Transport::Rdma), Reason::GssServerRefused);
  }
  std::filesystem::remove_all(state);
  std::filesystem::remove(keytab);
}

}  // namespace
}  // namespace stag::cli
