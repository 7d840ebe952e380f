// ProxyChannels between threads, over the transports.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <future>
#include <memory>

#include "base/pause.h"
#include "base/task_group.h"
#include "endpoint/connector.h"
#include "endpoint/listener.h"
#include "endpoint/loops.h"
#include "rpc/client.h"
#include "rpc/proxy_channel.h"
#include "rpc/server.h"
#include "testing/store_service.h"

namespace stag::endpoint {
namespace {

using namespace testing::store;
using namespace std::chrono_literals;

constexpr std::uint32_t kBulkSize = 70'000;

// Is answered when the test is over.
struct Unanswered : INCREMENT {
  static constexpr std::uint32_t program = 0x2000007d;
};

Task<std::uint32_t> answered_at_the_end(Loop& loop, const std::atomic<bool>& over,
                                        std::uint32_t value) {
  while (!over) co_await sleep_for(loop, 1ms);
  co_return value;
}

class Proxied : public ::testing::TestWithParam<Transport> {
 protected:
  Proxied() {
    server_.add(make_program(state_));
    server_.add<Unanswered>([this](rpc::CallContext& call, std::uint32_t value) {
      return answered_at_the_end(call.loop(), over_, value);
    });
    ListenOptions options;
    options.transport = GetParam();
    listener_.emplace(*listen(server_, {"127.0.0.1", 0}, options));
    ConnectorOptions by;
    by.transport = GetParam();
    far_connector_ = run_on(far_, [&] { return make_connector(far_, by); });
    connector_ = std::make_unique<rpc::ProxyConnector>(near_, *far_connector_);
    channel_ = *wait_on(near_, [&] { return connector_->connect(listener_->address(), {}); });
    client_.emplace(*channel_, kBinding);
  }
  ~Proxied() override {
    over_ = true;
    close();
    run_on(near_, [&] { channel_.reset(); });
    run_on(far_, [&] { far_connector_.reset(); });
  }
  void close() {
    finish_on(near_, [&] { return channel_->close(); });
  }

  template <class Make>
  auto on_near(Make make) {
    return wait_on(near_, std::move(make));
  }
  // Whether slot `slot` came back as it was put, into memory that goes at once.
  static Task<bool> put_and_got(rpc::Client& client, std::uint32_t slot) {
    const Rope data = pattern(kBulkSize, slot);
    const PutArgs put{.slot = slot, .data = data, .checksum = checksum(data)};
    const auto stored = co_await client.call<PUT>(put);
    if (!stored || stored->checksum != checksum(data)) co_return false;
    std::vector<std::byte> memory(kBulkSize);
    std::array<rpc::ResultBuffer, 1> buffers{};
    buffers[0].item = item::get_data;
    buffers[0].memory = memory;
    rpc::CallOptions options;
    if (slot % 2 == 0) options.result_buffers = buffers;
    const GetArgs get{.slot = slot, .count = kBulkSize};
    const auto back = co_await client.call<GET>(get, options);
    co_return back.ok() && back->data == data;
  }
  static Task<void> count_good(rpc::Client& client, std::uint32_t slot, int& good) {
    const bool came_back = co_await put_and_got(client, slot);
    good += came_back ? 1 : 0;
  }
  static Task<int> many(rpc::Client& client, std::uint32_t calls) {
    int good = 0;
    TaskGroup group;
    for (std::uint32_t slot = 0; slot < calls; ++slot) group.add(count_good(client, slot, good));
    co_await group.join();
    co_return good;
  }
  // A GET that is cancelled `turns` turns of near after it was begun, and how it ended.
  static Task<Reason> cancelled_after(rpc::Client& client, int turns) {
    std::vector<std::byte> memory(kBulkSize);
    std::array<rpc::ResultBuffer, 1> buffers{};
    buffers[0].item = item::get_data;
    buffers[0].memory = memory;
    CancelSource source;
    rpc::CallOptions options;
    options.result_buffers = buffers;
    options.cancel = source;
    TaskGroup cancelling;
    if (turns == 0) source.cancel();
    cancelling.add(cancel_later(client.channel().loop(), source, turns));
    const GetArgs get{.slot = 0, .count = kBulkSize};
    const auto back = co_await client.call<GET>(get, options);
    co_await cancelling.join();
    co_return back.ok() ? Reason::None : back.error().reason;
  }
  static Task<void> cancel_later(Loop& loop, CancelSource& source, int turns) {
    for (int turn = 0; turn < turns; ++turn) co_await resume_on(loop);
    source.cancel();
  }
  static Task<bool> cancelled_at_every_moment(rpc::Client& client) {
    bool all = co_await put_and_got(client, 0);
    for (int turns = 0; turns < 400; ++turns) {
      const Reason reason = co_await cancelled_after(client, turns);
      all = all && (reason == Reason::None || reason == Reason::Cancelled);
    }
    co_return all;
  }
  static Task<Reason> unanswered(rpc::Client& client, rpc::CallOptions options) {
    const auto result = co_await client.call<Unanswered>(1, options);
    co_return result.ok() ? Reason::None : result.error().reason;
  }

  State state_;
  rpc::Server server_;
  std::atomic<bool> over_{false};
  std::optional<Listener> listener_;
  Loops loops_{2};
  net::EpollLoop& near_ = loops_.at(0);
  net::EpollLoop& far_ = loops_.at(1);
  std::unique_ptr<rpc::Connector> far_connector_;
  std::unique_ptr<rpc::ProxyConnector> connector_;
  std::unique_ptr<rpc::Channel> channel_;
  std::optional<rpc::Client> client_;
};

TEST_P(Proxied, moves_bulk_of_hundreds_of_calls_both_ways) {
  EXPECT_EQ(on_near([&] { return many(*client_, 300); }), 300);
}

TEST_P(Proxied, cancels_calls_at_every_moment) {
  EXPECT_TRUE(on_near([&] { return cancelled_at_every_moment(*client_); }));
  EXPECT_TRUE(on_near([&] { return put_and_got(*client_, 1); })) << "the connection goes on";
}

TEST_P(Proxied, ends_a_call_at_its_deadline) {
  rpc::CallOptions options;
  options.timeout = 20ms;
  EXPECT_EQ(on_near([&] { return unanswered(*client_, options); }), Reason::TimedOut);
}

TEST_P(Proxied, goes_on_by_another_connection_and_counts_the_one_that_was_lost) {
  EXPECT_TRUE(on_near([&] { return put_and_got(*client_, 1); }));
  listener_->allow({*IpNetwork::parse("192.0.2.0/24")});
  rpc::CallOptions options;
  options.timeout = 20ms;
  EXPECT_NE(on_near([&] { return unanswered(*client_, options); }), Reason::None);
  listener_->allow({});
  EXPECT_TRUE(on_near([&] { return put_and_got(*client_, 2); }));
  EXPECT_GE(run_on(near_, [&] { return channel_->connections_lost(); }), 1u);
  EXPECT_TRUE(run_on(near_, [&] { return channel_->limits().has_value(); }));
}

TEST_P(Proxied, ends_calls_in_progress_when_it_is_closed) {
  std::promise<Reason> ended;
  struct Begun {
    static Task<void> run(rpc::Client& client, std::promise<Reason>& to) {
      to.set_value(co_await unanswered(client, {}));
    }
  };
  run_on(near_, [&] { detach(Begun::run(*client_, ended)); });
  EXPECT_TRUE(on_near([&] { return put_and_got(*client_, 1); }));
  close();
  EXPECT_EQ(ended.get_future().get(), Reason::Shutdown);
  EXPECT_EQ(on_near([&] { return unanswered(*client_, {}); }), Reason::Shutdown);
}

INSTANTIATE_TEST_SUITE_P(By, Proxied, ::testing::Values(Transport::Rdma, Transport::Tcp),
                         [](const auto& by) {
                           return by.param == Transport::Tcp ? "Tcp" : "Rdma";
                         });

}  // namespace
}  // namespace stag::endpoint
