// What `stag serve` does with what it is not told.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/support/arguments.h"
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

}  // namespace
}  // namespace stag::cli
