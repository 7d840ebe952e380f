#include "cli/support/log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/late_detail.h"
#include "base/reason.h"
#include "base/unique_fd.h"

namespace stag::cli {
namespace {

using namespace std::string_view_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

constexpr ReasonInfo kNotice{"Notice", Severity::Warning, "a notice"};
constexpr auto kHostile = "na\x1b[2Jme\n2024 forged\u009b\u202e\xff\x7f"sv;

// What is logged about something that a peer has named.
std::string logged(LogFormat format) {
  ::testing::internal::CaptureStderr();
  start_log("debug", format);
  trace(Reason::RpcPeerTooSlow, kHostile, kHostile);
  spdlog::default_logger()->flush();
  set_trace_sink(nullptr);
  return ::testing::internal::GetCapturedStderr();
}

bool is_one_plain_line(std::string line) {
  return line.ends_with('\n') && line.find_first_of("\x1b\x7f\xff\xc2\xe2\n"sv) == line.size() - 1;
}

TEST(Log, has_no_control_characters_of_a_peer_as_text) {
  const std::string line = logged(LogFormat::Text);
  EXPECT_TRUE(is_one_plain_line(line)) << line;
  EXPECT_NE(line.find("na\\033[2Jme\\0122024 forged\\302\\233\\342\\200\\256\\377\\177"), line.npos)
      << line;
}

TEST(Log, escapes_control_characters_as_JSON) {
  const std::string line = logged(LogFormat::Json);
  EXPECT_TRUE(is_one_plain_line(line)) << line;
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["where"], "na\x1b[2Jme\n2024 forged\u009b\u202e\ufffd\x7f");
}

// A client that is refused all the time costs no more than the lines that are written.
TEST(Log, asks_for_the_details_of_those_lines_alone_that_it_writes) {
  struct Detail final : LateDetail {
    std::string text() const override { return "asked " + std::to_string(++asked); }
    mutable int asked = 0;
  } detail;
  ::testing::internal::CaptureStderr();
  start_log("info", LogFormat::Text);
  for (int i = 0; i < 1000; ++i) trace_late(Reason::WorkersBusy, "export /slow", detail);
  trace_late(Reason::InjectedFault, "not of this level", detail);
  set_trace_sink(nullptr);
  const std::string lines = ::testing::internal::GetCapturedStderr();
  int written = 0;
  for (std::size_t at = 0; (at = lines.find("(asked ", at)) != lines.npos; ++at) ++written;
  EXPECT_GE(written, 1);
  EXPECT_EQ(detail.asked, written);
}

TEST(Log, counts_what_a_server_does_whatever_its_level) {
  ::testing::internal::CaptureStderr();
  start_log("off", LogFormat::Text);
  for (const Event each : {Event::ClientConnected, Event::ExportClientUnknown}) {
    const std::uint64_t before = event_count(each);
    log_notice(each, "here");
    log_event(each, "here", {});
    EXPECT_EQ(event_count(each), before + 2) << info(each).name;
  }
  set_trace_sink(nullptr);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

// A line of each severity, where the journal reads a descriptor with this inode number after that
// of standard error.
std::string logged_for_journal(LogFormat format, unsigned other_inode) {
  ::testing::internal::CaptureStderr();
  struct stat about {};
  ::fstat(STDERR_FILENO, &about);
  const std::string stream = fmt::format("{}:{}", about.st_dev, about.st_ino + other_inode);
  ::setenv("JOURNAL_STREAM", stream.c_str(), 1);
  start_log("debug", format);
  ::unsetenv("JOURNAL_STREAM");
  for (const Severity each : {Severity::Error, Severity::Warning, Severity::Info, Severity::Debug})
    log_notice({"Notice", each, "a notice"}, "here");
  set_trace_sink(nullptr);
  return ::testing::internal::GetCapturedStderr();
}

TEST(Log, has_the_priority_of_each_line_and_not_its_time_for_the_journal) {
  EXPECT_EQ(logged_for_journal(LogFormat::Text, 0),
            "<3>Notice here: a notice\n<4>Notice here: a notice\n<6>Notice here: a notice\n"
            "<7>Notice here: a notice\n");
}

TEST(Log, has_the_priority_in_front_for_the_journal_as_JSON) {
  const std::string lines = logged_for_journal(LogFormat::Json, 0);
  EXPECT_THAT(lines, StartsWith("<3>{\"time\":"));
  const auto json = nlohmann::json::parse(lines.substr(3, lines.find('\n') - 3));
  EXPECT_EQ(json["level"], "error");
}

TEST(Log, that_the_journal_does_not_read_is_as_always) {
  EXPECT_THAT(logged_for_journal(LogFormat::Text, 1),
              MatchesRegex("([0-9: .-]+ (error|warning|info|debug) +Notice here: a notice\n)+"));
}

// The files of this process end there, for as long as it lives: as where a disk is full.
class LongestFile {
 public:
  explicit LongestFile(rlim_t size) {
    std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = size, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~LongestFile() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, SIG_DFL);
  }
  LongestFile(const LongestFile&) = delete;
  LongestFile& operator=(const LongestFile&) = delete;

 private:
  rlimit before_{};
};

TEST(Log, says_in_a_file_what_a_full_disk_did_not_take) {
  const std::string path = ::testing::TempDir() + "stag-log-" + std::to_string(::getpid());
  const UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600));
  start_file_log("info", file.fd());
  log_notice(kNotice, "one");
  const off_t one = ::lseek(file.fd(), 0, SEEK_END);
  {
    const LongestFile full(static_cast<rlim_t>(one) + 5);  // the year and the dash behind it
    log_notice(kNotice, "two");
    log_notice(kNotice, "three");
  }
  log_notice(kNotice, "four");
  set_trace_sink(nullptr);
  start_log("warning", LogFormat::Text);
  ::unlink(path.c_str());
  std::array<char, 4096> text{};
  ASSERT_GT(::pread(file.fd(), text.data(), text.size() - 1, 0), 0);
  std::istringstream lines(text.data());
  std::vector<std::string> seen;
  for (std::string line; std::getline(lines, line);) seen.push_back(line);
  EXPECT_THAT(seen,
              ElementsAre(EndsWith("Notice one: a notice"), MatchesRegex("[0-9]+-"),
                          EndsWith("for a while (2 lines)"), EndsWith("Notice four: a notice")));
}

// What would be the socket of a log daemon, which reads when it is asked to.
class Daemon {
 public:
  explicit Daemon(const std::string& path)
      : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    path.copy(at.sun_path, sizeof at.sun_path - 1);
    ::unlink(at.sun_path);
    EXPECT_EQ(::bind(fd_.fd(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  }
  std::vector<std::string> lines() {
    std::vector<std::string> read;
    std::array<char, 4096> line{};
    for (ssize_t size = 0; (size = ::recv(fd_.fd(), line.data(), line.size(), 0)) >= 0;)
      read.emplace_back(line.data(), static_cast<std::size_t>(size));
    return read;
  }

 private:
  UniqueFd fd_;
};

class SystemLog : public ::testing::Test {
 protected:
  SystemLog() { start_system_log("info", "/mnt 100%", path); }
  ~SystemLog() override {
    ::unlink(path.c_str());
    start_log("warning", LogFormat::Text);
    set_trace_sink(nullptr);
  }
  static std::string pid() { return std::to_string(::getpid()); }

  const std::string path = ::testing::TempDir() + "stag-log-" + pid();
};

TEST_F(SystemLog, gets_lines_as_syslog_sends_them) {
  Daemon daemon(path);
  log_notice(kNotice, "here", "so");
  EXPECT_THAT(daemon.lines(), ElementsAre(MatchesRegex(
                                  "<28>[A-Z][a-z]+ [ 0-9][0-9] [0-9]+:[0-9]+:[0-9]+ stag.[0-9]+.: "
                                  "/mnt 100%: Notice here: a notice .so.")));
  log_notice({"Info", Severity::Info, "i"}, {});
  log_notice({"Error", Severity::Error, "e"}, {});
  EXPECT_THAT(daemon.lines(), ElementsAre(AllOf(StartsWith("<30>"), HasSubstr("[" + pid() + "]: ")),
                                          StartsWith("<27>")));
}
// Without end, if it waits.
TEST_F(SystemLog, that_nobody_reads_stops_nobody_and_says_later_what_was_lost) {
  Daemon daemon(path);
  constexpr std::size_t kLines = 20'000;  // net.unix.max_dgram_qlen is 10, or some hundreds
  for (std::size_t i = 0; i < kLines; ++i) log_notice(kNotice, {});
  const std::size_t taken = daemon.lines().size();
  ASSERT_LT(taken, kLines);
  log_notice(kNotice, "again");
  EXPECT_THAT(daemon.lines(),
              ElementsAre(HasSubstr("LogLinesLost: the log took no more lines for a while (" +
                                    std::to_string(kLines - taken) + " lines)"),
                          HasSubstr("Notice again")));
}
TEST_F(SystemLog, is_found_again_when_its_daemon_is_another_one) {
  {
    Daemon first(path);
    log_notice(kNotice, "one");
    EXPECT_THAT(first.lines(), ElementsAre(HasSubstr("Notice one")));
  }
  log_notice(kNotice, "two");
  Daemon second(path);
  log_notice(kNotice, "three");
  EXPECT_THAT(second.lines(), ElementsAre(HasSubstr("(1 lines)"), HasSubstr("Notice three")));
}

}  // namespace
}  // namespace stag::cli
