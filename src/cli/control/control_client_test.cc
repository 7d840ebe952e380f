// A program that asks a server which listens, and then says nothing.
#include "cli/control/control_client.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>

#include "net/local_socket.h"

namespace stag::cli {
namespace {

using namespace std::chrono_literals;

class ControlClient : public ::testing::Test {
 protected:
  ControlClient() {
    char name[] = "/tmp/stag-control-XXXXXX";
    folder_ = mkdtemp(name);
    path_ = folder_ + "/control";
    auto listening = net::listen_locally({.path = path_});
    EXPECT_TRUE(listening);
    // The kernel accepts for it.
    if (listening) silent_ = *std::move(listening);
  }
  ~ControlClient() override { std::filesystem::remove_all(folder_); }

  std::string result_of(Task<std::string> task) {
    std::string result;
    const auto finish = [](Task<std::string> asked, std::string& into,
                           net::EpollLoop& loop) -> Task<void> {
      into = co_await std::move(asked);
      loop.stop();
    };
    detach(finish(std::move(task), result, loop_));
    loop_.run();
    return result;
  }
  static bool is_silence(const std::string& error) {
    return error.starts_with("the server has not answered for ");
  }
  static Json request() {
    Json request;
    request.set("command", std::string_view("status"));
    return request;
  }
  static OnPiece no_piece() {
    return [](const JsonObject&, Bytes) -> Task<Result<std::string_view, std::string>> {
      ADD_FAILURE();
      co_return std::string_view("more");
    };
  }

  std::string folder_, path_;
  UniqueFd silent_;
  net::EpollLoop loop_;
  CancelSource interrupted_;
  cli::Run run_{loop_, interrupted_};
};

TEST_F(ControlClient, gives_a_server_up_that_says_nothing) {
  const auto row = [](const JsonObject&, std::string_view) { ADD_FAILURE(); };
  EXPECT_TRUE(is_silence(result_of(ask_server(run_, path_, request(), row, {.answer = 1ms}))));
  EXPECT_TRUE(
      is_silence(result_of(ask_for_pieces(run_, path_, request(), no_piece(), {.answer = 1ms}))));
}

TEST_F(ControlClient, that_is_interrupted_gives_a_server_up_that_does_not_end_its_pieces) {
  // The request is on its way by then, or is not sent.
  const Timer timer = loop_.after(1ms, [this] { interrupted_.cancel(); });
  const ControlPatience patience{.answer = 24h, .end = 1ms};
  EXPECT_TRUE(is_silence(result_of(ask_for_pieces(run_, path_, request(), no_piece(), patience))));
}

}  // namespace
}  // namespace stag::cli
