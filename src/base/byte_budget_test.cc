#include "base/byte_budget.h"

#include <gtest/gtest.h>

#include <deque>
#include <thread>
#include <vector>

#include "testing/manual_loop.h"

namespace stag {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

// A connection that has as many requests as it can get.
struct Connection {
  Connection(const std::shared_ptr<ByteBudget>& budget, const std::string& address, Loop& loop)
      : share(std::make_shared<ByteBudget::Share>(budget, address, loop, [this] { ++told; })) {}
  ~Connection() { release(held); }
  void take_all(std::uint64_t each) {
    while (share->reserve(each)) held += each;
    share->stop_waiting();
  }
  bool reserve(std::uint64_t bytes) {
    const bool now = share->reserve(bytes);
    if (now) held += bytes;
    return now;
  }
  void release(std::uint64_t bytes) {
    held -= bytes;
    if (bytes != 0) share->release(bytes);
  }

  int told = 0;
  std::uint64_t held = 0;
  std::shared_ptr<ByteBudget::Share> share;
};

class ByteBudgetTest : public ::testing::Test {
 protected:
  Connection& connect(const std::string& address) {
    return connections.emplace_back(budget, address, loop);
  }

  testing::ManualLoop loop;
  std::shared_ptr<ByteBudget> budget = std::make_shared<ByteBudget>(1024 * kMiB);
  std::deque<Connection> connections;
};

TEST_F(ByteBudgetTest, gives_one_address_a_ninth_however_many_connections_it_has) {
  for (int i = 0; i < 17; ++i) connect("a").take_all(16 * kMiB);
  EXPECT_GT(budget->used(), 90 * kMiB);
  EXPECT_LE(budget->used(), 1024 * kMiB / 9);
  EXPECT_TRUE(connect("b").reserve(64 * kMiB));
}

TEST_F(ByteBudgetTest, leaves_bytes_for_another_client_behind_the_same_address) {
  for (int i = 0; i < 17; ++i) connect("a").take_all(kMiB);
  EXPECT_FALSE(connections[0].reserve(kMiB));
  EXPECT_TRUE(connect("a").reserve(kMiB));
}

TEST_F(ByteBudgetTest, leaves_an_eighth_whatever_sixteen_addresses_take) {
  for (int i = 0; i < 16 * 17; ++i) connect(std::to_string(i % 16)).take_all(16 * kMiB);
  for (Connection& greedy : connections) greedy.take_all(kMiB);
  EXPECT_GT(1024 * kMiB - budget->used(), 1024 * kMiB / 8);
  EXPECT_TRUE(connect("new").reserve(16 * kMiB));
}

TEST_F(ByteBudgetTest, leaves_bytes_for_a_new_connection_whatever_many_small_ones_take) {
  for (int i = 0; i < 16 * 128; ++i) connect(std::to_string(i % 16)).take_all(kMiB);
  EXPECT_TRUE(connect("new").reserve(16 * kMiB));
}

TEST_F(ByteBudgetTest, gives_every_address_a_few_bytes_as_long_as_there_are_any) {
  for (int i = 0; i < 63; ++i) EXPECT_TRUE(connect(std::to_string(i)).reserve(16 * kMiB));
  EXPECT_FALSE(connect("new").reserve(17 * kMiB));
  EXPECT_TRUE(connect("newer").reserve(16 * kMiB));
}

TEST_F(ByteBudgetTest, grants_a_request_of_any_size_when_nothing_is_reserved) {
  EXPECT_TRUE(connect("a").reserve(2048 * kMiB));
  EXPECT_TRUE(budget->exhausted());
  Connection& waiting = connect("b");
  EXPECT_FALSE(waiting.reserve(2048 * kMiB));
  connections[0].release(2048 * kMiB);
  loop.drain();
  EXPECT_TRUE(waiting.reserve(2048 * kMiB));
}

TEST_F(ByteBudgetTest, reserves_bytes_for_a_waiting_request_and_tells_it_on_its_loop) {
  Connection& first = connect("a");
  EXPECT_TRUE(first.reserve(900 * kMiB));
  testing::ManualLoop other;
  Connection waiting(budget, "b", other);
  EXPECT_FALSE(waiting.reserve(200 * kMiB));
  EXPECT_EQ(budget->waiting(), 1u);
  first.release(900 * kMiB);
  EXPECT_EQ(budget->used(), 200 * kMiB) << "set aside, whoever comes next";
  EXPECT_EQ(waiting.told, 0) << "not inside of release()";
  loop.drain();
  EXPECT_EQ(waiting.told, 0) << "not on another's loop";
  other.drain();
  EXPECT_EQ(waiting.told, 1);
  EXPECT_TRUE(waiting.reserve(200 * kMiB));
  EXPECT_EQ(budget->waiting(), 0u);
}

TEST_F(ByteBudgetTest, serves_the_address_that_has_least_first) {
  Connection& all = connect("all");
  EXPECT_TRUE(all.reserve(1010 * kMiB));
  Connection& some = connect("some");
  EXPECT_TRUE(some.reserve(14 * kMiB));
  EXPECT_FALSE(some.reserve(3 * kMiB));
  Connection& none = connect("none");
  EXPECT_FALSE(none.reserve(16 * kMiB));
  all.release(20 * kMiB);
  loop.drain();
  EXPECT_EQ(none.told, 1);
  EXPECT_EQ(some.told, 0);
  all.release(990 * kMiB);
  loop.drain();
  EXPECT_EQ(some.told, 1);
  EXPECT_TRUE(some.reserve(3 * kMiB) && none.reserve(16 * kMiB));
}

TEST_F(ByteBudgetTest, serves_requests_alike_in_the_order_they_came) {
  Connection& all = connect("all");
  EXPECT_TRUE(all.reserve(1024 * kMiB));
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(connect(std::to_string(i % 4)).reserve(16 * kMiB));
  for (int i = 1; i <= 4; ++i) {
    all.release(16 * kMiB);
    loop.drain();
    EXPECT_EQ(connections[static_cast<std::size_t>(i)].told, 1);
  }
  all.release(all.held);
  loop.drain();
  for (int i = 1; i <= 8; ++i)
    EXPECT_TRUE(connections[static_cast<std::size_t>(i)].reserve(16 * kMiB)) << i;
}

TEST_F(ByteBudgetTest, takes_back_bytes_reserved_for_a_request_that_was_withdrawn) {
  Connection& all = connect("all");
  EXPECT_TRUE(all.reserve(1024 * kMiB));
  std::optional<Connection> gone(std::in_place, budget, "b", loop);
  EXPECT_FALSE(gone->reserve(600 * kMiB));
  Connection& next = connect("c");
  EXPECT_FALSE(next.reserve(700 * kMiB));
  all.release(1024 * kMiB);
  gone.reset();
  loop.drain();
  EXPECT_EQ(next.told, 1);
  EXPECT_TRUE(next.reserve(700 * kMiB));
  EXPECT_EQ(budget->used(), 700 * kMiB);
}

// Runs what is posted to it from anywhere, on the thread that asks.
class PostedLoop final : public Loop {
 public:
  TimePoint now() const override { return {}; }
  void post(Function function) override {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(function));
  }
  Timer after(Duration, Function) override { return {}; }
  void offload(Function, Function) override {}
  bool on_thread() const override { return true; }
  void run() {
    std::deque<Function> now;
    {
      const std::lock_guard lock(mutex_);
      std::swap(now, posted_);
    }
    for (Function& function : now) function();
  }

 private:
  void cancel_timer(std::uint64_t) override {}
  std::mutex mutex_;
  std::deque<Function> posted_;
};

// Would never end if a wake-up were lost.
TEST_F(ByteBudgetTest, loses_no_wake_up_between_threads) {
  budget = std::make_shared<ByteBudget>(8 * kMiB);
  const auto work = [this](int thread) {
    PostedLoop own;
    Connection connection(budget, std::to_string(thread % 3), own);
    for (std::uint64_t i = 0; i < 3000; ++i) {
      const std::uint64_t bytes = (i % 5 + 1) * kMiB / 2;
      while (!connection.reserve(bytes)) {
        for (const int before = connection.told; connection.told == before; own.run())
          std::this_thread::yield();
      }
      connection.release(bytes);
      if (i % 7 == 0 && !connection.reserve(bytes)) connection.share->stop_waiting();
      connection.release(connection.held);
      own.run();
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work, i);
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(budget->used(), 0u);
  EXPECT_EQ(budget->waiting(), 0u);
}

}  // namespace
}  // namespace stag
