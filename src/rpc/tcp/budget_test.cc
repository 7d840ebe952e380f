#include "rpc/tcp/budget.h"

#include <gtest/gtest.h>

#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/late_detail.h"
#include "testing/sim_tcp_client.h"

namespace stag::rpc::tcp {
namespace {

using testing::SimClient;

constexpr std::uint64_t kMega = 1 << 20;

class TcpByteBudget : public ::testing::Test {
 protected:
  std::shared_ptr<Account> account(const std::string& host, std::uint64_t most = 1000 * kMega) {
    auto made = std::make_shared<Account>(budget, host, loop, most);
    made->on_room = [this] { ++told; };
    return made;
  }
  void settle() { loop.run_until_idle(); }

  fabric::SimLoop loop;
  std::shared_ptr<ByteBudget> budget = std::make_shared<ByteBudget>(64 * kMega);
  int told = 0;
};

TEST_F(TcpByteBudget, leaves_room_for_others_whatever_one_address_takes) {
  const auto greedy = account("192.0.2.1"), again = account("192.0.2.1");
  while (greedy->try_take(kMega) && again->try_take(kMega)) {
  }
  EXPECT_GE(budget->used(), 6 * kMega);
  EXPECT_LE(budget->used(), 64 * kMega / 9);
  const auto other = account("192.0.2.2");
  EXPECT_TRUE(other->try_take(8 * kMega));
}

TEST_F(TcpByteBudget, leaves_room_for_a_newcomer_beside_sixteen_greedy_addresses) {
  std::vector<std::shared_ptr<Account>> greedy;
  for (int i = 0; i < 16; ++i) greedy.push_back(account("198.51.100." + std::to_string(i)));
  for (const auto& each : greedy)
    while (each->try_take(64 << 10)) {
    }
  const auto newcomer = account("192.0.2.1");
  EXPECT_TRUE(newcomer->try_take(kMega));
}

// Has no memory for what is posted, as long as that is said.
class ForgetfulLoop final : public Loop {
 public:
  explicit ForgetfulLoop(std::function<void()> looks) : looks_(std::move(looks)) {}
  TimePoint now() const override { return {}; }
  void post(Function function) override {
    looks_();
    if (forgets) throw std::bad_alloc();
    posted_.push_back(std::move(function));
  }
  Timer after(Duration, Function) override { return {}; }
  void offload(Function, Function) override {}
  bool on_thread() const override { return true; }
  void run() {
    for (Function& each : std::exchange(posted_, {})) each();
  }
  bool forgets = false;

 private:
  void cancel_timer(std::uint64_t) override {}
  const std::function<void()> looks_;
  std::vector<Function> posted_;
};

TEST_F(TcpByteBudget, tells_those_it_could_not_tell_when_more_is_given_back) {
  // Telling needs the budget's mutex free: it may have to wake another loop.
  ForgetfulLoop other([this] { static_cast<void>(budget->used()); });
  const auto holder = account("192.0.2.1");
  ASSERT_TRUE(holder->try_take(60 * kMega));
  const auto waits = std::make_shared<Account>(budget, "192.0.2.2", other, 1000 * kMega);
  int granted = 0;
  waits->on_room = [&] { granted += waits->try_take(8 * kMega) ? 1 : 0; };
  EXPECT_FALSE(waits->try_take(8 * kMega));
  other.forgets = true;
  holder->give(40 * kMega);
  other.forgets = false;
  other.run();
  EXPECT_EQ(granted, 0);
  holder->give(kMega);
  other.run();
  EXPECT_EQ(granted, 1);
  waits->give(8 * kMega);
  waits->on_room = nullptr;
  holder->give(19 * kMega);
  EXPECT_EQ(budget->used(), 0u);
}

TEST_F(TcpByteBudget, does_not_count_what_small_calls_hold) {
  const auto small = account("192.0.2.1");
  EXPECT_TRUE(small->try_take(10'000));
  EXPECT_EQ(budget->used(), 0u);
  small->give(10'000);
}

TEST_F(TcpByteBudget, grants_in_order_what_waits_when_bytes_are_given_back) {
  const auto first = account("192.0.2.1"), second = account("192.0.2.1");
  ASSERT_TRUE(first->try_take(30 * kMega));
  EXPECT_FALSE(second->try_take(4 * kMega));
  const auto third = account("192.0.2.1");
  EXPECT_FALSE(third->try_take(kMega)) << "second is before it";
  settle();
  EXPECT_EQ(told, 0);
  first->give(30 * kMega);
  EXPECT_FALSE(account("192.0.2.1")->try_take(4 * kMega)) << "what they wait for is theirs";
  settle();
  EXPECT_EQ(told, 2);
  EXPECT_TRUE(second->try_take(4 * kMega));
  EXPECT_TRUE(third->try_take(kMega));
}

TEST_F(TcpByteBudget, grants_more_than_there_is_rather_than_never) {
  const auto large = account("192.0.2.1");
  EXPECT_TRUE(large->try_take(100 * kMega));
  EXPECT_FALSE(account("192.0.2.2")->try_take(kMega));
}

TEST_F(TcpByteBudget, forgets_who_waits_and_goes) {
  auto first = account("192.0.2.1");
  ASSERT_TRUE(first->try_take(30 * kMega));
  auto second = account("192.0.2.1");
  EXPECT_FALSE(second->try_take(20 * kMega));
  const auto third = account("192.0.2.1");
  EXPECT_FALSE(third->try_take(20 * kMega));
  first.reset();   // the second is granted what it waits for,
  second.reset();  // and goes before it knows
  settle();
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(third->try_take(20 * kMega));
  third->give(20 * kMega);
  settle();
  EXPECT_EQ(budget->used(), 0u);
}

TEST_F(TcpByteBudget, limits_a_connection_and_tells_it_when_it_has_given_some_back) {
  const auto one = account("192.0.2.1", 2 * kMega);
  ASSERT_TRUE(one->try_take(kMega));
  EXPECT_FALSE(one->try_take(2 * kMega));
  one->give(kMega);
  settle();
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(one->try_take(3 * kMega)) << "alone it may be larger";
}

ServerOptions tight(std::uint64_t all) {
  ServerOptions options;
  options.max_bytes_all = all;
  return options;
}

// A server whose reply_max() is a megabyte.
struct MegaReplies : SimClient {
  explicit MegaReplies(const ServerOptions& options) : SimClient(kMega, options) {
    service.reply_bound = kMega;
    service.body = testing::store::pattern(kMega - 1000, 1).flatten();
  }
};

TEST(TcpServerBytes, no_more_calls_run_than_their_replies_have_room) {
  MegaReplies client(tight(36 * kMega));
  client.call(20);
  client.settle();
  EXPECT_EQ(client.service.started, 4u) << "a ninth of all is what one address may have";
  for (int i = 0; i < 100; ++i) {
    client.service.let_go();
    client.settle();
    client.wire.take(kMega);
    client.settle();
    EXPECT_LE(client.budget->used(), 5 * kMega);
  }
  EXPECT_EQ(client.service.answered, 20u);
  EXPECT_EQ(client.budget->used(), 0u);
}

TEST(TcpServerBytes, a_reply_of_unknown_length_counts_as_a_long_one) {
  MegaReplies client(tight(36 * kMega));
  client.service.reply_bound.reset();
  client.call(20);
  client.settle();
  EXPECT_EQ(client.service.started, 3u);
}

TEST(TcpServerBytes, a_reply_counts_as_all_that_it_may_be) {
  ServerOptions options;
  options.max_bytes = 17 * kMega;
  MegaReplies client(options);
  client.service.reply_bound = 8 * kMega;
  client.call(5);
  client.settle();
  EXPECT_EQ(client.service.started, 2u);
}

TEST(TcpServerBytes, a_call_whose_reply_may_be_longer_than_the_limit_runs_alone) {
  ServerOptions options;
  options.max_bytes = 4 * kMega;
  MegaReplies client(options);
  client.service.reply_bound = 100 * kMega;
  client.call(3);
  for (std::size_t i = 1; i <= 3; ++i) {
    client.settle();
    EXPECT_EQ(client.service.started, i);
    client.service.let_go();
    client.settle();
    while (client.wire.take(kMega) > 0) client.settle();
  }
  EXPECT_EQ(client.service.answered, 3u);
  EXPECT_EQ(client.budget->used(), 0u);
}

TEST(TcpServerBytes, a_call_that_waits_goes_on_when_another_connection_gives_bytes_back) {
  MegaReplies first(tight(8 * kMega));
  first.call(2);
  first.settle();
  ASSERT_EQ(first.service.started, 1u) << "the second would be too much";
  SimClient second(kMega, {}, first.budget);
  second.service.reply_bound = kMega;
  second.call();
  second.settle();
  EXPECT_EQ(second.service.started, 0u);
  first.service.hold = false;
  first.service.let_go();
  first.settle();
  while (first.wire.take(kMega) > 0) first.settle();
  EXPECT_EQ(first.service.answered, 2u);
  second.settle();
  EXPECT_EQ(second.service.started, 1u);
}

TEST(TcpServerBytes, a_long_call_is_read_when_there_is_room_for_it) {
  MegaReplies first(tight(8 * kMega));
  first.call();
  first.settle();
  SimClient second(kMega, {}, first.budget);
  const Rope call = SimClient::framed_call(1, 2 * kMega);
  second.wire.arrive(call);
  second.settle();
  EXPECT_EQ(second.service.started, 0u);
  EXPECT_GT(second.wire.unread(), kMega);
  first.service.let_go();
  first.settle();
  while (first.wire.take(kMega) > 0) first.settle();
  second.settle();
  EXPECT_EQ(second.service.started, 1u);
}

// What the log says in detail of each RpcNoRoom, while this exists.
struct NoRoomDetails {
  NoRoomDetails() {
    told().clear();
    set_trace_sink([](Reason reason, std::string_view, std::string_view) {
      if (reason == Reason::RpcNoRoom) told().push_back(late_detail());
    });
  }
  ~NoRoomDetails() { set_trace_sink(nullptr); }
  static std::vector<std::string>& told() {
    static std::vector<std::string> all;
    return all;
  }
};

TEST(TcpServerBytes, a_call_that_there_is_no_room_to_read_is_named_in_the_log) {
  const NoRoomDetails details;
  for (const bool xid_came : {true, false}) {
    MegaReplies first(tight(8 * kMega));
    first.call();
    first.settle();
    SimClient second(kMega, {}, first.budget);
    second.wire.arrive(SimClient::framed_call(0xabc, 2 * kMega).slice(0, xid_came ? 8 : 7));
    second.loop.run_for(std::chrono::seconds(121));
    EXPECT_FALSE(second.open());
  }
  EXPECT_EQ(details.told(), (std::vector<std::string>{"xid 0x00000abc", ""}));
}

TEST(TcpServerBytes, a_connection_that_waits_for_the_stall_limit_ends) {
  const NoRoomDetails details;
  MegaReplies first(tight(8 * kMega));
  first.call();
  first.settle();
  SimClient second(kMega, {}, first.budget);
  second.service.reply_bound = kMega;
  second.call(2);
  second.loop.run_for(std::chrono::seconds(59));
  EXPECT_TRUE(second.open());
  second.loop.run_for(std::chrono::seconds(62));
  EXPECT_FALSE(second.open());
  EXPECT_EQ(second.service.started, 0u);
  EXPECT_EQ(details.told(), std::vector<std::string>{"xid 0x00000001"});
}

// Calls without arguments whose Replies are as short, at once.
struct Short : SimClient {
  explicit Short(std::size_t room, const ServerOptions& options = {},
                 std::shared_ptr<ByteBudget> shared = nullptr)
      : SimClient(room, options, std::move(shared)) {
    service.hold = false;
    service.body = testing::store::pattern(16, 1).flatten();
  }
  // As a client that takes what there is, again and again.
  void take_all() {
    do settle();
    while (wire.take(kMega) > 0);
  }
};
// What an Encoder of a short Reply begins with.
constexpr std::uint64_t kBlock = 512;

TEST(TcpServerBytes, short_replies_that_are_not_taken_count_as_the_memory_they_hold) {
  Short client(1000);
  client.call(20'000);
  client.settle();
  EXPECT_LE(client.service.answered, ServerOptions{}.stream.queued / kBlock);
  EXPECT_GE(client.budget->used(), client.service.answered * kBlock);
  client.take_all();
  EXPECT_EQ(client.service.answered, 20'000u);
  EXPECT_EQ(client.budget->used(), 0u);
}

TEST(TcpServerBytes, who_takes_no_short_replies_has_a_part_of_the_budget_as_others_have) {
  Short first(1000, tight(9 * kMega));
  Short second(1000, {}, first.budget);
  constexpr std::uint64_t kOfOneRead = (64 << 10) / 44 + 1;
  for (Short* each : {&first, &second}) {
    each->call(20'000);
    each->settle();
  }
  EXPECT_LE((first.service.answered + second.service.answered) * kBlock,
            kMega + 2 * kOfOneRead * kBlock);
  SimClient other(kMega, {}, first.budget);
  other.service.hold = false;
  other.call();
  other.settle();
  EXPECT_EQ(other.service.answered, 1u);
  for (Short* each : {&first, &second}) {
    each->take_all();
    EXPECT_EQ(each->service.answered, 20'000u);
  }
  first.settle();
  EXPECT_EQ(first.budget->used(), 0u);
}

TEST(TcpServerBytes, who_takes_no_short_replies_has_what_one_connection_may_have) {
  ServerOptions options;
  options.max_bytes = kMega;
  Short client(1000, options);
  client.call(20'000);
  client.settle();
  EXPECT_LE(client.service.answered * kBlock, 2 * kMega);
  client.take_all();
  EXPECT_EQ(client.service.answered, 20'000u);
}

// Whether others give their bytes back first, or the client takes its Replies.
TEST(TcpServerBytes, short_replies_go_on_when_there_is_room_or_the_client_takes_the_others) {
  for (const bool room_first : {true, false}) {
    Short client(1000, tight(4 * kMega));
    client.call(400);
    client.settle();
    EXPECT_EQ(client.service.answered, 400u);
    const auto full = std::make_shared<Account>(client.budget, "full", client.loop, 100 * kMega);
    full->take(4 * kMega);
    client.call(2000);
    client.settle();
    const std::size_t before = client.service.answered;
    EXPECT_LT(before, 2400u) << "nobody has room";
    if (room_first) {
      full->give(4 * kMega);
      client.settle();
      EXPECT_GT(client.service.answered, before);
    } else {
      client.take_all();
      EXPECT_EQ(client.service.answered, 2400u) << "others may keep what they have";
      full->give(4 * kMega);
    }
    client.take_all();
    client.loop.run_for(std::chrono::seconds(200));
    EXPECT_TRUE(client.open()) << "nothing is asked for any more";
    EXPECT_EQ(client.service.answered, 2400u);
  }
}

TEST_F(TcpByteBudget, what_was_refused_is_not_had_by_what_must_be_taken_meanwhile) {
  const auto one = account("192.0.2.1"), full = account("192.0.2.2");
  one->take(200'000);
  full->take(64 * kMega);
  while (one->try_take(1000)) {
  }
  one->take(10'000);
  EXPECT_FALSE(one->try_take(1000));
  full->give(64 * kMega);
  settle();
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(one->try_take(1000));
}

TEST(TcpServerBytes, nothing_is_held_for_a_connection_that_ended) {
  std::shared_ptr<ByteBudget> budget;
  {
    MegaReplies client(tight(8 * kMega));
    budget = client.budget;
    client.call(20);
    client.wire.arrive(SimClient::framed_call(21, kMega).slice(0, 1000));
    client.settle();
    EXPECT_GT(budget->used(), 0u);
  }
  EXPECT_EQ(budget->used(), 0u);
}

}  // namespace
}  // namespace stag::rpc::tcp
