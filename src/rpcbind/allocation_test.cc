// Where memory runs out in a lookup, its connection is closed all the same.
#include <gtest/gtest.h>

#include <future>

#include "net/loop.h"
#include "rpc/tcp/channel.h"
#include "rpc/tcp/server.h"
#include "rpcbind/lookup.h"
#include "testing/failing_new.h"
#include "testing/rpcbind_service.h"

namespace stag::rpcbind {
namespace {

using namespace std::chrono_literals;

enum class End : std::uint8_t { Found, Error, NoMemory };

class LookupMemory : public ::testing::Test {
 protected:
  LookupMemory() {
    service_.put(100003, 3, "tcp", "0.0.0.0.8.1");
    service_.serve_version_4(programs_);
    on(servers_.loop(), [this] {
      auto listening =
          rpc::tcp::TcpServer::listen(servers_.loop(), {"127.0.0.1", 0}, programs_, {});
      server_ = std::move(*listening);
    });
  }
  ~LookupMemory() override {
    std::promise<void> closed;
    servers_.loop().post([&] { detach(close(*server_, closed)); });
    closed.get_future().wait();
    on(servers_.loop(), [this] { server_.reset(); });
  }
  static Task<> close(rpc::tcp::TcpServer& server, std::promise<void>& closed) {
    co_await server.close();
    closed.set_value();
  }
  template <class F>
  static void on(Loop& loop, F function) {
    std::packaged_task<void()> task(function);
    loop.post([&task] { task(); });
    task.get_future().get();
  }

  // Whether there was such an allocation.
  bool fails_at(std::size_t n, End& end) {
    std::promise<End> ended;
    clients_.loop().post([&] { detach(look_up(ended, n)); });
    end = ended.get_future().get();
    bool failed = false;
    on(clients_.loop(),
       [&] { failed = std::exchange(stag::testing::allocations_until_failure, 0) == 0; });
    return failed;
  }
  Task<> look_up(std::promise<End>& ended, std::size_t n) {
    rpc::tcp::TcpConnector connector(clients_.loop());
    Options options;
    options.port = server_->local().port;
    options.timeout = 2s;
    const Question question{100003, 3, {"tcp"}};
    End end = End::NoMemory;
    stag::testing::allocations_until_failure = n;
    try {
      const auto found = co_await lookup(connector, "127.0.0.1", question, options);
      end = found ? End::Found : End::Error;
    } catch (const std::bad_alloc&) {
    }
    ended.set_value(end);
  }

  testing::RpcbindService service_;
  rpc::Server programs_;
  net::LoopThread servers_, clients_;
  std::unique_ptr<rpc::tcp::TcpServer> server_;
};

TEST_F(LookupMemory, that_runs_out_ends_it_and_its_connection) {
  End end = End::Error;
  std::size_t n = 1, failures = 0;
  for (; fails_at(n, end); ++n) failures += end == End::Found ? 0 : 1;
  EXPECT_EQ(end, End::Found) << "none failed";
  EXPECT_GT(failures, 5u);
  EXPECT_LT(n, 1000u);
}

}  // namespace
}  // namespace stag::rpcbind
