#include "net/fair_turns.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/descriptor.h"
#include "net/loop.h"

namespace stag::net {
namespace {

using namespace std::chrono_literals;

TEST(Usage, is_halved_again_and_again_until_it_is_forgotten) {
  Usage usage;
  const TimePoint start{1h};
  EXPECT_EQ(usage.at(start), 0ns);
  usage.charge(1ms);
  EXPECT_EQ(usage.at(start + 1ms), 1ms);
  EXPECT_EQ(usage.at(start + 9ms), 500us);
  EXPECT_EQ(usage.at(start + 18ms), 250us);
  usage.charge(1ms);
  EXPECT_EQ(usage.at(start + 18ms), 1250us);
  EXPECT_EQ(usage.at(start + 1h), 0ns);
}

TEST(SharedUsage, is_one_for_each_name_and_forgets_names_that_are_out_of_use) {
  SharedUsage usages;
  const std::shared_ptr<Usage> here = usages.of("192.0.2.1");
  EXPECT_EQ(usages.of("192.0.2.1"), here);
  EXPECT_NE(usages.of("192.0.2.2"), here);
  for (int i = 0; i < 10'000; ++i) usages.of(std::to_string(i));
  EXPECT_LT(usages.size(), 200u);
  EXPECT_EQ(usages.of("192.0.2.1"), here);
}

TEST(FairOrder, puts_the_least_used_first_and_leaves_out_what_is_gone) {
  std::array<int, 4> used{30, 10, 20, 10};
  FairOrder<int> order;
  for (int& each : used) order.add(&each);
  order.order([](int microseconds) { return std::chrono::microseconds(microseconds); });
  order.forget(&used[2]);
  EXPECT_EQ(order.next(), &used[1]);
  EXPECT_EQ(order.next(), &used[3]);
  EXPECT_EQ(order.next(), nullptr);
  EXPECT_EQ(order.next(), &used[0]);
  EXPECT_TRUE(order.empty());
}

// A connection whose peer has always sent more; each turn of it takes a while.
class Visitor {
 public:
  using Visit = std::function<void(const std::string& name)>;
  Visitor(EpollLoop& loop, std::string name, const std::string& shares, Duration takes, Visit visit)
      : name_(std::move(name)), takes_(takes), visit_(std::move(visit)) {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    peer_ = UniqueFd(ends[1]);
    descriptor_ = *Descriptor::watch(loop, UniqueFd(ends[0]));
    descriptor_.share_usage(shares);
    wait();
  }
  void send() { EXPECT_EQ(write(peer_.fd(), "x", 1), 1); }
  void drain() {
    char byte = 0;
    while (read(descriptor_.fd(), &byte, 1) == 1) {
    }
    descriptor_.mark_unreadable();
  }

 private:
  void wait() {
    descriptor_.when_readable([this] {
      const auto end = std::chrono::steady_clock::now() + takes_;
      while (std::chrono::steady_clock::now() < end) {
      }
      visit_(name_);
      // There is more at once, unless the test says that there is not.
      wait();
    });
  }

  const std::string name_;
  const Duration takes_;
  const Visit visit_;
  UniqueFd peer_;
  Descriptor descriptor_;
};

TEST(FairTurns, serve_a_connection_that_asks_for_little_before_many_that_ask_for_much) {
  constexpr std::size_t kTimes = 9;
  EpollLoop loop;
  std::vector<std::string> visits;
  std::vector<std::unique_ptr<Visitor>> crowd;
  std::unique_ptr<Visitor> modest;
  std::size_t sent = 0;
  std::size_t next = 0;
  const auto visit = [&](const std::string& name) {
    if (name == "modest") {
      // The modest connection came right behind the one in whose turn it asked.
      next += visits.back() == "asked" ? 1 : 0;
      modest->drain();
    }
    visits.push_back(name);
    if (visits.size() % 20 == 0 && sent++ < kTimes) {
      modest->send();
      visits.emplace_back("asked");
    }
    if (sent > kTimes) loop.stop();
  };
  modest = std::make_unique<Visitor>(loop, "modest", "modest", 0us, visit);
  for (int i = 0; i < 16; ++i) {
    const std::string name = std::to_string(i);
    crowd.push_back(std::make_unique<Visitor>(loop, name, name, 200us, visit));
    crowd.back()->send();
  }
  loop.run();
  // One slice later, not sixteen; where this thread itself is held up, all may be forgiven.
  EXPECT_GT(next, kTimes / 2);
}

TEST(FairOrder, gives_many_of_one_name_no_more_than_one_of_another) {
  struct One {
    std::shared_ptr<Usage> usage;
    int turns = 0;
  };
  SharedUsage usages;
  std::vector<One> all(8);
  for (One& one : all) one.usage = usages.of(&one == &all.front() ? "single" : "several");
  TimePoint now{1h};
  for (int turn = 0; turn < 200; ++turn, now += 200us) {
    FairOrder<One> order;
    for (One& one : all) order.add(&one);
    order.order([&](const One& one) { return one.usage->at(now); });
    One* const first = order.next();
    ++first->turns;
    first->usage->charge(200us);
  }
  EXPECT_NEAR(all.front().turns, 100, 2);
}

}  // namespace
}  // namespace stag::net
