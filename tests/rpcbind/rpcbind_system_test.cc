// `stag serve --rpcbind` next to Debian's rpcbind, seen by rpcinfo, showmount and our own client.
// Runs in a network namespace and with a /run of its own (tests/rpcbind/run).
#include <gtest/gtest.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "testing/proves.h"

namespace {

std::string stag() {
  return std::getenv("STAG");
}

struct Output {
  int code = -1;
  std::string text;
};

// Both streams of a shell command.
Output sh(const std::string& command) {
  Output output;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return output;
  std::array<char, 4096> chunk;
  while (std::size_t size = fread(chunk.data(), 1, chunk.size(), pipe))
    output.text.append(chunk.data(), size);
  const int status = pclose(pipe);
  output.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return output;
}

// A program in the background.
class Process {
 public:
  explicit Process(const std::vector<std::string>& command) {
    std::array<int, 2> pipe{};
    if (::pipe(pipe.data()) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      dup2(pipe[1], STDOUT_FILENO);
      dup2(pipe[1], STDERR_FILENO);
      close(pipe[0]);
      close(pipe[1]);
      std::vector<char*> words;
      for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
      words.push_back(nullptr);
      execvp(words[0], words.data());
      _exit(127);
    }
    close(pipe[1]);
    out_ = fdopen(pipe[0], "r");
  }
  ~Process() {
    end(SIGKILL);
    fclose(out_);
  }
  Process(const Process&) = delete;

  // Reads on until a line that begins with `start`; false: it ended before.
  bool says(const std::string& start) {
    std::array<char, 1024> line;
    while (fgets(line.data(), line.size(), out_) != nullptr) {
      said_ += line.data();
      if (std::string(line.data()).starts_with(start)) return true;
    }
    return false;
  }
  const std::string& said() const { return said_; }
  // Its exit code; -1 after a signal.
  int end(int signal) {
    if (pid_ < 0) return -1;
    if (signal != 0) kill(pid_, signal);
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
  FILE* out_ = nullptr;
  std::string said_;
};

// The words with one blank after each.
std::string words_of(const std::string& text) {
  std::istringstream words(text);
  std::string all;
  for (std::string word; words >> word;) all += word + " ";
  return all;
}

void bring_loopback_up() {
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  ASSERT_EQ(ioctl(fd, SIOCGIFFLAGS, &request), 0);
  request.ifr_flags |= IFF_UP;
  ASSERT_EQ(ioctl(fd, SIOCSIFFLAGS, &request), 0);
  close(fd);
}

class Rpcbind : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { bring_loopback_up(); }
  void SetUp() override {
    std::string folder = "/tmp/stag-rpcbind-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    work_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(work_); }

  void start_rpcbind() {
    rpcbind_ = std::make_unique<Process>(std::vector<std::string>{"rpcbind", "-f"});
    for (int i = 0; i < 1000 && sh("rpcinfo").code != 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_EQ(sh("rpcinfo").code, 0) << "rpcbind does not answer";
  }
  std::unique_ptr<Process> serve(const std::vector<std::string>& options,
                                 const std::string& state = "state") {
    std::vector<std::string> command{stag(),      "serve",   "--export",         "/memory=memory",
                                     "--rpcbind", "--state", work_ + "/" + state};
    command.insert(command.end(), options.begin(), options.end());
    return std::make_unique<Process>(command);
  }
  // What rpcbind has of `program`: "3 rdma 0.0.0.0.78.81".
  static std::set<std::string> registered(const std::string& program) {
    std::set<std::string> found;
    std::istringstream lines(sh("rpcinfo").text);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string number, version, netid, address;
      words >> number >> version >> netid >> address;
      if (number == program) found.insert(version + " " + netid + " " + address);
    }
    return found;
  }
  static bool holds(const std::set<std::string>& set, const std::string& line) {
    return set.count(line) == 1;
  }

  std::string work_;
  std::unique_ptr<Process> rpcbind_;
};

TEST_F(Rpcbind, lists_every_program_under_the_netids_of_its_transports) {
  PROVES("R8166-5-c", "R8267-4.2-c", "R8166-9-a", "R8166-9-b");
  start_rpcbind();
  auto server = serve({"--listen", "::", "--rdma-port", "12345", "--tcp-port", "2050"});
  ASSERT_TRUE(server->says("registered:")) << server->said();
  const std::set<std::string> nfs = registered("100003");
  for (const char* line :
       {"3 tcp 0.0.0.0.8.2", "3 tcp6 ::.8.2", "3 rdma 0.0.0.0.48.57", "3 rdma6 ::.48.57"})
    EXPECT_TRUE(holds(nfs, line)) << line << "\n" << sh("rpcinfo").text;
  EXPECT_FALSE(holds(nfs, "3 udp 0.0.0.0.8.2"));
  const std::set<std::string> mount = registered("100005");
  for (const char* line :
       {"3 tcp 0.0.0.0.8.2", "3 tcp6 ::.8.2", "3 udp 0.0.0.0.8.2", "3 udp6 ::.8.2"})
    EXPECT_TRUE(holds(mount, line)) << line;
  EXPECT_FALSE(holds(mount, "3 rdma 0.0.0.0.48.57")) << "RFC 8267 5.1";
}

TEST_F(Rpcbind, finds_what_its_tools_call_and_show) {
  start_rpcbind();
  auto server = serve({"--listen", "127.0.0.1", "--rdma-port", "0", "--tcp-port", "0", "--export",
                       "/some=memory,client=192.0.2.0/24,client=localhost:ro", "--export",
                       "/star=memory,client=*:ro"});
  ASSERT_TRUE(server->says("registered:")) << server->said();
  for (const char* query :
       {"rpcinfo -T tcp 127.0.0.1 100003 3", "rpcinfo -T udp 127.0.0.1 100005 3",
        "rpcinfo -T tcp 127.0.0.1 100005 3"}) {
    const Output answer = sh(query);
    EXPECT_NE(answer.text.find("ready and waiting"), std::string::npos) << query << answer.text;
  }
  const Output exports = sh("showmount --no-headers -e 127.0.0.1");
  EXPECT_EQ(exports.code, 0) << exports.text;
  EXPECT_EQ(words_of(exports.text), "/memory (everyone) /some 192.0.2.0/24,localhost /star * ");
  const Output ours = sh(stag() + " info 127.0.0.1");
  EXPECT_EQ(ours.code, 0) << ours.text;
  for (const char* word : {"rdma", "mountd", "udp"})
    EXPECT_NE(ours.text.find(word), std::string::npos) << word << "\n" << ours.text;
  EXPECT_EQ(words_of(ours.text.substr(ours.text.find("exports\n"))),
            "exports /memory sec=sys /some sec=sys 192.0.2.0/24 localhost /star sec=sys * ");
}

TEST_F(Rpcbind, leads_our_client_to_the_port_of_NFS_over_RDMA) {
  PROVES("R8267-4.2-a", "R8166-5-f", "R8166-9-c", "R8166-9-e");
  start_rpcbind();
  auto server = serve({"--listen", "::", "--rdma-port", "12345", "--tcp-port", "2050"});
  ASSERT_TRUE(server->says("registered:")) << server->said();
  for (const char* host : {"127.0.0.1", "[::1]"}) {
    const std::string url = "'nfs://" + std::string(host) + "/memory?port=rpcbind'";
    const Output made = sh(stag() + " touch " + url + " && " + stag() + " stat " + url);
    EXPECT_EQ(made.code, 0) << made.text;
  }
  const Output tcp = sh(stag() + " ls 'nfs://127.0.0.1/memory?port=rpcbind&proto=tcp'");
  EXPECT_EQ(tcp.code, 0) << tcp.text;
  // RDMA's port is named, MOUNT's is not.
  const Output named = sh(stag() + " ls nfs://127.0.0.1:12345/memory");
  EXPECT_EQ(named.code, 0) << named.text;
}

TEST_F(Rpcbind, shows_the_same_program_number_on_RDMA_as_on_TCP) {
  PROVES("R8166-9-d", "R8166-5-e");
  start_rpcbind();
  auto server = serve({"--rdma-port", "12345", "--tcp-port", "2050", "--rdma-netid", "torus"});
  ASSERT_TRUE(server->says("registered:")) << server->said();
  const std::set<std::string> nfs = registered("100003");
  EXPECT_TRUE(holds(nfs, "3 tcp 127.0.0.1.8.2"));
  EXPECT_TRUE(holds(nfs, "3 torus 127.0.0.1.48.57")) << sh("rpcinfo").text;
}

TEST_F(Rpcbind, is_left_clean_when_the_server_ends) {
  start_rpcbind();
  const std::string before = sh("rpcinfo").text;
  auto server = serve({"--rdma-port", "0", "--tcp-port", "0"});
  ASSERT_TRUE(server->says("registered:")) << server->said();
  EXPECT_NE(sh("rpcinfo").text, before);
  EXPECT_EQ(server->end(SIGTERM), 0);
  EXPECT_EQ(sh("rpcinfo").text, before);
  EXPECT_FALSE(std::filesystem::exists(work_ + "/state/rpcbind"));
}

TEST_F(Rpcbind, is_cleared_of_what_a_crash_left_behind_by_the_next_run) {
  start_rpcbind();
  auto crashed = serve({"--rdma-port", "12345", "--tcp-port", "2050"});
  ASSERT_TRUE(crashed->says("registered:")) << crashed->said();
  crashed->end(SIGKILL);
  ASSERT_TRUE(holds(registered("100003"), "3 rdma 127.0.0.1.48.57"));
  auto next = serve({"--rdma-port", "12346", "--tcp-port", "2051", "--no-udp"});
  ASSERT_TRUE(next->says("registered:")) << next->said();
  EXPECT_TRUE(holds(registered("100003"), "3 rdma 127.0.0.1.48.58"));
  EXPECT_FALSE(holds(registered("100005"), "3 udp 127.0.0.1.8.2")) << "it was of the first run";
  EXPECT_EQ(next->end(SIGTERM), 0);
  EXPECT_TRUE(registered("100003").empty());
}

TEST_F(Rpcbind, keeps_what_another_server_registered) {
  start_rpcbind();
  auto first = serve({"--rdma-port", "12345", "--tcp-port", "2050"});
  ASSERT_TRUE(first->says("registered:")) << first->said();
  const std::string before = sh("rpcinfo").text;
  auto second = serve({"--rdma-port", "12346", "--tcp-port", "2051"}, "other");
  EXPECT_FALSE(second->says("ready:"));
  EXPECT_NE(second->said().find("is registered with rpcbind already"), std::string::npos)
      << second->said();
  EXPECT_EQ(second->end(0), 1);
  EXPECT_EQ(sh("rpcinfo").text, before);
}

TEST_F(Rpcbind, that_does_not_run_is_named) {
  std::filesystem::remove("/run/rpcbind.sock");
  auto server = serve({"--rdma-port", "0", "--tcp-port", "0"});
  EXPECT_FALSE(server->says("ready:"));
  EXPECT_NE(server->said().find("cannot register with rpcbind at 127.0.0.1:111"), std::string::npos)
      << server->said();
  EXPECT_EQ(server->end(0), 1);
}

}  // namespace
