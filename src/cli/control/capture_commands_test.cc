// A capture at the control socket, on virtual time: when it ends, whom it waits for, what it keeps.
#include "cli/control/capture_commands.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fabric/capture/pcapng.h"
#include "fabric/sim/sim_loop.h"

namespace stag::cli {
namespace {

using namespace std::chrono_literals;

// Asks, and takes each row of the answer.
class Asker final : public ControlReply {
 public:
  explicit Asker(Loop& loop) : loop_(loop) {}
  void attach(std::vector<UniqueFd>) override {}
  Task<bool> flush() override {
    const std::size_t end = text_.find('\n');
    rows.push_back(*JsonObject::parse(text_.substr(0, end)));
    bytes += text_.size() - end - 1;
    longest = std::max(longest, text_.size() - end - 1);
    text_.clear();
    co_return true;
  }
  Task<std::optional<std::string>> next_line() override {
    if (takes > 0s) co_await sleep_for(loop_, takes);
    if (gone) co_return std::nullopt;
    co_return answer;
  }
  Loop& loop() override { return loop_; }
  std::uint64_t last(std::string_view key) const { return rows.back().number(key).value_or(0); }
  std::string end() const { return rows.empty() ? "" : rows.back().text("end").value_or(""); }

  std::vector<JsonObject> rows;
  std::size_t bytes = 0, longest = 0;
  std::string answer = "more";
  Duration takes{0};
  bool gone = false;
  std::optional<std::string> error;  // once it is over

 private:
  Loop& loop_;
};

class Captures : public ::testing::Test {
 protected:
  Captures() { commands_.add_to(table_); }
  ~Captures() override {
    for (const auto& each : askers_) each->gone = true;
    loop_.run_until_idle();
  }

  Asker& ask(const std::string& members = "", bool administrator = true) {
    askers_.push_back(std::make_unique<Asker>(loop_));
    Asker& made = *askers_.back();
    detach(serve(made, members, administrator));
    return made;
  }
  void frame(std::size_t size = 100) {
    tap_->take(std::vector<std::byte>(size), *IpAddress::parse("192.0.2.7"), 0);
  }
  bool run_until(const std::function<bool()>& happened) { return loop_.run_until(happened); }

  static constexpr std::size_t kRoom = 1 << 20;
  fabric::SimLoop loop_{std::nullopt};
  const std::shared_ptr<fabric::capture::Tap> tap_ = std::make_shared<fabric::capture::Tap>();
  CaptureCommands commands_{tap_, kRoom};
  ControlCommands table_;
  std::vector<std::unique_ptr<Asker>> askers_;

 private:
  Task<void> serve(Asker& asker, std::string members, bool administrator) {
    const auto request = ControlRequest::parse("{\"command\":\"capture\"" + members + "}");
    ControlPeer peer;
    peer.administrator = administrator;
    asker.error = co_await table_["capture"](*request, asker, peer);
  }
};

TEST_F(Captures, are_for_administrators_only) {
  EXPECT_NE(ask("", false).error->find("only root and the user of the server"), std::string::npos);
  EXPECT_EQ(tap_->newest(), 0u);
}

TEST_F(Captures, end_after_their_time_with_all_that_came) {
  Asker& asker = ask(",\"seconds\":60");
  const TimePoint begin = loop_.now();
  ASSERT_TRUE(run_until([&] { return asker.rows.size() == 2; }));
  frame();
  ASSERT_TRUE(run_until([&] { return asker.error.has_value(); }));
  EXPECT_EQ(loop_.now() - begin, 60s);
  EXPECT_EQ(*asker.error, "");
  EXPECT_EQ(asker.end(), "time");
  EXPECT_EQ(asker.last("frames"), 1u);
  EXPECT_EQ(tap_->newest(), 0u);
}

TEST_F(Captures, end_at_their_size_and_count_no_frame_that_came_later) {
  Asker& asker = ask(",\"max\":1000");
  for (int i = 0; i < 100; ++i) frame();
  ASSERT_TRUE(run_until([&] { return asker.error.has_value(); }));
  EXPECT_EQ(asker.end(), "size");
  EXPECT_EQ(asker.last("frames"), 1000 / fabric::capture::packet_size(100));
  EXPECT_EQ(asker.last("lost"), 0u);
}

TEST_F(Captures, end_when_they_are_asked_to_with_what_still_waits) {
  Asker& asker = ask();
  ASSERT_TRUE(run_until([&] { return asker.rows.size() == 2; }));
  asker.answer = "end";
  frame();
  ASSERT_TRUE(run_until([&] { return asker.error.has_value(); }));
  EXPECT_EQ(asker.end(), "asked");
  EXPECT_EQ(asker.last("frames"), 1u);
  EXPECT_GE(asker.bytes, fabric::capture::packet_size(100));
}

TEST_F(Captures, wait_for_no_reader_and_count_what_finds_no_room) {
  Asker& asker = ask(",\"seconds\":3600");
  asker.takes = 10s;
  ASSERT_TRUE(run_until([&] { return !asker.rows.empty(); }));
  const std::size_t fit = kRoom / fabric::capture::packet_size(4000);
  for (std::size_t i = 0; i < fit + 7; ++i) frame(4000);
  ASSERT_TRUE(run_until([&] { return asker.bytes >= fit * fabric::capture::packet_size(4000); }));
  EXPECT_EQ(asker.last("lost"), 7u);
  EXPECT_LE(asker.longest, CaptureCommands::kPiece);
  frame();
  asker.answer = "end";
  ASSERT_TRUE(run_until([&] { return asker.error.has_value(); }));
  EXPECT_EQ(asker.last("frames"), fit + 8);
}

TEST_F(Captures, end_with_their_reader_and_make_room_for_others) {
  for (std::size_t i = 0; i < CaptureCommands::kMost; ++i) ask();
  const Asker& refused = ask();
  ASSERT_TRUE(refused.error.has_value());
  EXPECT_NE(refused.error->find("4 captures are running"), std::string::npos);
  askers_[0]->gone = true;
  ASSERT_TRUE(run_until([&] { return askers_[0]->error.has_value(); }));
  EXPECT_NE(tap_->newest(), 0u);
  EXPECT_FALSE(ask().error.has_value());
  for (const auto& each : askers_) each->gone = true;
  loop_.run_until_idle();
  EXPECT_EQ(tap_->newest(), 0u);
}

TEST_F(Captures, are_of_one_client_if_wanted) {
  Asker& mine = ask(",\"client\":\"192.0.2.0/24\"");
  Asker& other = ask(",\"client\":\"198.51.100.1\"");
  frame();
  mine.answer = other.answer = "end";
  ASSERT_TRUE(run_until([&] { return mine.error && other.error; }));
  EXPECT_EQ(mine.last("frames"), 1u);
  EXPECT_EQ(other.last("frames"), 0u);
}

}  // namespace
}  // namespace stag::cli
