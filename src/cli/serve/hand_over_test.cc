// How a successor asks the server that runs, which is the test.
#include "cli/serve/hand_over.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <future>
#include <string>
#include <thread>

#include "net/local_socket.h"
#include "net/passed_sockets.h"

namespace stag::cli {
namespace {

class Predecessor {
 public:
  explicit Predecessor(const std::string& path) : listening_(listen_at(path)) {}

  // A connection on which it has given its sockets.
  UniqueFd give(const std::string& more = {}) {
    UniqueFd connection(::accept(listening_.fd(), nullptr, nullptr));
    if (!connection || command_on(connection) != "take-over") return {};
    std::vector<UniqueFd> sockets;
    sockets.emplace_back(::dup(listening_.fd()));
    net::send_with_sockets(connection.fd(), "{\"sockets\": 1, \"seconds\": 7" + more + "}\n",
                           sockets);
    return connection;
  }
  // Empty when there is none any more.
  static std::string command_on(const UniqueFd& connection) {
    const auto request = net::receive_with_sockets(connection.fd(), 4096);
    if (!request) return {};
    const auto row = JsonObject::parse(request->text.substr(0, request->text.find('\n')));
    return row ? row->text("command").value_or("") : std::string();
  }
  // A request that comes from now on finds no server.
  void end() { ::shutdown(listening_.fd(), SHUT_RDWR); }

 private:
  static UniqueFd listen_at(const std::string& path) {
    auto listening = net::listen_locally({.path = path});
    EXPECT_TRUE(listening.ok());
    // accept() waits.
    EXPECT_EQ(::fcntl(listening->fd(), F_SETFL, 0), 0);
    return *std::move(listening);
  }

  const UniqueFd listening_;
};

// It closes connections that ask for nothing, and a start may take longer than that.
TEST(TakeOver, asks_again_where_it_has_taken_too_long) {
  const std::string state = ::testing::TempDir() + "stag_hand_over_" + std::to_string(::getpid());
  std::filesystem::create_directory(state);
  Predecessor predecessor(state + "/control");
  std::promise<bool> closed;
  std::promise<std::string> heard;
  std::thread serving([&] {
    const bool asked = bool(predecessor.give());
    closed.set_value(asked);
    const UniqueFd again = predecessor.give();
    heard.set_value(again ? Predecessor::command_on(again) : "nothing");
  });
  auto asked = TakeOver::ask(state + "/control", state);
  ASSERT_TRUE(asked && *asked);
  EXPECT_EQ((*asked)->take_sockets().size(), 1u);
  EXPECT_TRUE(closed.get_future().get());
  EXPECT_EQ((*asked)->go(), std::chrono::seconds(7));
  predecessor.end();
  EXPECT_EQ(heard.get_future().get(), "make-way");
  serving.join();
  std::filesystem::remove_all(state);
}

TEST(TakeOver, takes_metrics_of_which_the_port_alone_is_told_for_such_at_all_addresses) {
  const std::string state = ::testing::TempDir() + "stag_metrics_at_" + std::to_string(::getpid());
  std::filesystem::create_directory(state);
  const auto told = [&](const std::string& more) {
    Predecessor predecessor(state + "/control");
    std::thread serving([&] { predecessor.give(more); });
    const auto asked = TakeOver::ask(state + "/control", state);
    serving.join();
    return asked && *asked ? (*asked)->metrics_at() : std::nullopt;
  };
  EXPECT_EQ(told(", \"metrics\": 9, \"metrics_host\": \"127.0.0.1\""), (Address{"127.0.0.1", 9}));
  EXPECT_EQ(told(", \"metrics\": 9"), (Address{"::", 9}));
  EXPECT_EQ(told(""), std::nullopt);
  std::filesystem::remove_all(state);
}

}  // namespace
}  // namespace stag::cli
