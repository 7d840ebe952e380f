// The control socket on the wire: what it answers, and what it bears.
#include "cli/control/control_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <future>

#include "cli/control/clients_commands.h"
#include "cli/control/control_client.h"
#include "cli/serve/hand_over.h"
#include "net/loop.h"
#include "net/socket_address.h"

namespace stag::cli {
namespace {

// A program that asks, with calls that block.
class Peer {
 public:
  explicit Peer(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const auto at = net::numeric_address({path, 0});
    connected = ::connect(fd_.fd(), at->data(), at->size()) == 0;
  }
  bool send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(fd_.fd(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  // Without its end; empty when the server has closed the connection.
  std::string line() {
    std::string text;
    for (char byte = 0; ::recv(fd_.fd(), &byte, 1, 0) == 1 && byte != '\n';) text += byte;
    return text;
  }
  std::string ask(std::string_view request) {
    send(std::string(request) + "\n");
    return line();
  }
  int fd() const { return fd_.fd(); }
  bool connected = false;

 private:
  UniqueFd fd_;
};

class Control : public ::testing::Test {
 protected:
  Control() {
    char name[] = "/tmp/stag-control-XXXXXX";
    folder_ = mkdtemp(name);
    options_.path = folder_ + "/control";
    commands_["count"] = [this](const ControlRequest& request, ControlReply& reply,
                                const ControlPeer&) { return count(request, reply); };
    commands_["fail"] = [](const ControlRequest&, ControlReply&, const ControlPeer&) {
      return fail();
    };
    commands_["wait"] = [this](const ControlRequest&, ControlReply& reply, const ControlPeer&) {
      return wait(reply);
    };
  }
  ~Control() override {
    socket_ = nullptr;
    std::filesystem::remove_all(folder_);
  }
  void open() {
    auto opened = ControlSocket::open(options_, commands_);
    ASSERT_TRUE(opened) << opened.error();
    socket_ = *std::move(opened);
  }
  Peer peer() const { return Peer(options_.path); }

  // That many rows, each in a page of its own.
  Task<std::string> count(const ControlRequest& request, ControlReply& reply) {
    const std::uint64_t most = request.members.number("to").value_or(0);
    for (std::uint64_t i = 0; i < most; ++i) {
      Json row;
      row.set("row", i).set("filler", std::string(1000, 'x'));
      reply.add(row);
      if (!co_await reply.flush()) break;
      ++sent_;
    }
    ended_.set_value();
    co_return std::string();
  }
  static Task<std::string> fail() { co_return std::string("it does not work"); }
  Task<std::string> wait(ControlReply& reply) {
    begun_.set_value();
    co_await offloaded(reply.loop(), [this] {
      go_on_.get_future().wait();
      return true;
    });
    co_return std::string();
  }

  std::string folder_;
  ControlOptions options_;
  ControlCommands commands_;
  std::unique_ptr<ControlSocket> socket_;
  std::atomic<std::uint64_t> sent_{0};
  std::promise<void> ended_, begun_, go_on_;
};

TEST_F(Control, answers_with_rows_and_says_when_it_is_done) {
  open();
  Peer one = peer();
  EXPECT_EQ(one.ask(R"({"command":"count","to":1})").substr(0, 8), R"({"row":0)");
  EXPECT_EQ(one.line(), R"({"done":true})");
  EXPECT_EQ(one.ask(R"({"command":"fail"})"), R"({"error":"it does not work"})");
}

TEST_F(Control, answers_requests_that_come_together_or_in_pieces) {
  open();
  Peer one = peer();
  one.send("{\"command\":\"fail\"}\n{\"command\":\"fail\"}\n{\"comm");
  EXPECT_EQ(one.line(), R"({"error":"it does not work"})");
  EXPECT_EQ(one.line(), R"({"error":"it does not work"})");
  EXPECT_EQ(one.ask("and\":\"fail\"}"), R"({"error":"it does not work"})");
}

TEST_F(Control, answers_what_is_no_request_with_a_sentence_and_goes_on) {
  open();
  Peer one = peer();
  const std::string deep(3000, '[');
  for (const std::string& bad :
       {std::string(), std::string("x"), std::string("[]"), std::string("{}"),
        std::string(R"({"command":7})"), std::string(R"({"command":"nothing"})"), deep,
        std::string("\0\xff\x01", 3), std::string(R"({"command":"fail"}})")})
    EXPECT_EQ(one.ask(bad).substr(0, 9), R"({"error":)") << bad;
  EXPECT_EQ(one.ask(R"({"command":"fail"})"), R"({"error":"it does not work"})");
}

TEST_F(Control, ends_with_a_request_that_is_too_long) {
  open();
  Peer one = peer();
  one.send(std::string(options_.request_bytes, ' '));
  EXPECT_EQ(one.line(), R"({"error":"a request has at most 4096 bytes"})");
  EXPECT_EQ(one.line(), "");
  EXPECT_EQ(peer().ask(R"({"command":"fail"})"), R"({"error":"it does not work"})");
}

TEST_F(Control, turns_away_who_would_be_one_too_many) {
  options_.connections = 2;
  open();
  {
    Peer one = peer(), two = peer();
    ASSERT_NE(one.ask(R"({"command":"fail"})"), "");
    ASSERT_NE(two.ask(R"({"command":"fail"})"), "");
    Peer three = peer();
    EXPECT_EQ(three.line(), R"({"error":"too many ask at the same time; try again"})");
    EXPECT_EQ(three.line(), "");
  }
  // They are gone: the server sees it sooner or later.
  std::string answer;
  while (answer != R"({"error":"it does not work"})") answer = peer().ask(R"({"command":"fail"})");
}

// Often it has closed the connection before it is asked, and the request cannot be sent.
TEST_F(Control, tells_programs_whenever_they_ask_that_they_are_one_too_many) {
  constexpr int kTimes = 50;
  options_.connections = 1;
  open();
  Peer one = peer();
  ASSERT_NE(one.ask(R"({"command":"fail"})"), "");
  const std::string too_many = "too many ask at the same time; try again";
  net::EpollLoop loop;
  CancelSource interrupted;
  cli::Run run{loop, interrupted};
  const auto ask = [](cli::Run* in, const std::string* path, std::string* answer) -> Task<> {
    Json request;
    request.set("command", std::string_view("status"));
    const auto row = [](const JsonObject&, std::string_view) { ADD_FAILURE(); };
    *answer = co_await ask_server(*in, *path, std::move(request), row);
    in->loop.stop();
  };
  for (int i = 0; i < kTimes; ++i) {
    std::string answer;
    loop.post([&] { detach(ask(&run, &options_.path, &answer)); });
    loop.run();
    EXPECT_EQ(answer, too_many);
    const auto asked = TakeOver::ask(options_.path, folder_);
    ASSERT_FALSE(asked);
    EXPECT_TRUE(asked.error().ends_with(": " + too_many)) << asked.error();
  }
}

TEST_F(Control, cuts_off_who_does_not_read_and_answers_the_others) {
  options_.patience = std::chrono::milliseconds(50);
  open();
  Peer deaf = peer();
  deaf.send("{\"command\":\"count\",\"to\":1000000}\n");
  ended_.get_future().wait();  // without its million rows
  EXPECT_LT(sent_.load(), 100000u);
}

TEST_F(Control, closes_a_connection_that_asks_for_nothing) {
  options_.patience = std::chrono::milliseconds(50);
  open();
  EXPECT_EQ(peer().line(), "");
}

TEST_F(Control, answers_others_while_one_does_not_read) {
  open();
  Peer deaf = peer();
  deaf.send("{\"command\":\"count\",\"to\":1000000}\n");
  EXPECT_EQ(peer().ask(R"({"command":"fail"})"), R"({"error":"it does not work"})");
}

TEST_F(Control, ends_while_somebody_does_not_read_and_takes_its_file_with_it) {
  open();
  Peer deaf = peer();
  deaf.send("{\"command\":\"count\",\"to\":1000000}\n");
  socket_ = nullptr;
  EXPECT_FALSE(std::filesystem::exists(options_.path));
  EXPECT_FALSE(peer().connected);
}

TEST_F(Control, waits_at_its_end_for_a_command_that_runs) {
  open();
  Peer one = peer();
  one.send("{\"command\":\"wait\"}\n");
  begun_.get_future().wait();
  std::atomic<bool> ended{false};
  auto ending = std::async(std::launch::async, [&] {
    socket_ = nullptr;
    ended = true;
  });
  EXPECT_EQ(one.line(), "");  // Its connection is closed,
  EXPECT_FALSE(ended);        // and the command still runs.
  go_on_.set_value();
  ending.wait();
}

TEST_F(Control, that_has_stopped_answers_nobody_and_lets_a_command_go_on) {
  open();
  Peer one = peer();
  one.send("{\"command\":\"wait\"}\n");
  begun_.get_future().wait();
  socket_->stop();
  EXPECT_EQ(one.line(), "");
  EXPECT_FALSE(peer().connected);
  auto successor = ControlSocket::open(options_, commands_);
  ASSERT_TRUE(successor) << successor.error();
  go_on_.set_value();
  socket_ = nullptr;
  EXPECT_TRUE(peer().connected) << "the name is the successor's";
}

TEST_F(Control, listens_where_another_one_has_died) {
  open();
  // Its file is left over.
  std::filesystem::rename(options_.path, folder_ + "/kept");
  socket_ = nullptr;
  std::filesystem::rename(folder_ + "/kept", options_.path);
  open();
  EXPECT_EQ(peer().ask(R"({"command":"fail"})"), R"({"error":"it does not work"})");
  EXPECT_FALSE(ControlSocket::open(options_, commands_));
}

TEST(ControlStateid, is_read_as_it_is_written) {
  nfs::state::Stateid stateid{.seqid = 7};
  for (std::size_t i = 0; i < 12; ++i) stateid.other[i] = static_cast<std::byte>(i * 23);
  const std::string text = stateid_text(stateid);
  EXPECT_EQ(text.size(), 24u);
  ASSERT_TRUE(parse_stateid(text));
  EXPECT_EQ(parse_stateid(text)->other, stateid.other);
  for (const char* bad : {"", "0", "00112233445566778899aab", "00112233445566778899aabg",
                          "00112233445566778899aabbc", "0x112233445566778899aabb"})
    EXPECT_FALSE(parse_stateid(bad)) << bad;
}

}  // namespace
}  // namespace stag::cli
