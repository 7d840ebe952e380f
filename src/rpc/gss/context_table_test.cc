// Bounds of the server's contexts, and whose go.
#include "rpc/gss/context_table.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <string_view>

#include "base/reason.h"
#include "testing/fake_mechanism.h"

namespace stag::rpc {
namespace {

using namespace std::chrono_literals;
using testing::FakeAcceptorContext;
using testing::FakeRealm;

struct TableWorld {
  explicit TableWorld(ContextTable::Limits limits) : table(limits) {}

  std::shared_ptr<ServerContext> begin(const std::string& address) {
    now += 1s;
    return table.begin(address, std::make_unique<FakeAcceptorContext>(realm), now);
  }
  std::shared_ptr<ServerContext> make_half_open(const std::string& address) {
    auto made = begin(address);
    table.add_half_open(made);
    return made;
  }
  std::shared_ptr<ServerContext> make(const std::string& address) {
    auto made = begin(address);
    EXPECT_TRUE(table.establish(made, now));
    return made;
  }
  bool there(const std::shared_ptr<ServerContext>& context) const {
    return table.find(context->handle) == context;
  }

  std::shared_ptr<FakeRealm> realm = std::make_shared<FakeRealm>();
  ContextTable table;
  TimePoint now{1h};
};

TEST(ContextTable, takes_what_was_unused_for_longest_of_an_address_that_has_all) {
  TableWorld world({.all = 3, .half_open = 5});
  std::deque<std::shared_ptr<ServerContext>> own;
  for (int i = 0; i < 3; ++i) own.push_back(world.make("192.0.2.1"));
  own[0]->used(world.now + 1s);
  world.now += 2s;
  const auto fourth = world.make("192.0.2.1");
  EXPECT_TRUE(world.there(own[0])) << "was used";
  EXPECT_FALSE(world.there(own[1]));
  EXPECT_TRUE(world.there(own[2]) && world.there(fourth));
  EXPECT_EQ(world.table.established(), 3u);
}

// Its client has not had the time to use it.
TEST(ContextTable, takes_none_that_was_just_established_for_having_waited_for_long) {
  TableWorld world({.all = 2, .half_open = 5});
  const auto waited = world.begin("192.0.2.1");
  const auto older = world.make("192.0.2.1");
  world.now += 1h;
  EXPECT_TRUE(world.table.establish(waited, world.now));
  const auto newest = world.make("192.0.2.1");
  EXPECT_TRUE(world.there(waited) && world.there(newest));
  EXPECT_FALSE(world.there(older));
}

// Else those who send more first tokens than are accepted would push out everybody's.
TEST(ContextTable, takes_none_whose_first_token_is_still_being_accepted) {
  TableWorld world({.all = 1000, .half_open = 2});
  std::deque<std::shared_ptr<ServerContext>> waiting;
  for (int i = 0; i < 600; ++i) waiting.push_back(world.begin("192.0.2." + std::to_string(i)));
  EXPECT_EQ(world.table.half_open(), 0u);
  for (const auto& each : waiting) {
    EXPECT_FALSE(world.there(each));
    EXPECT_TRUE(world.table.establish(each, world.now));
  }
  EXPECT_EQ(world.table.established(), 600u);
}

TEST(ContextTable, takes_from_the_address_that_has_most) {
  TableWorld world({.all = 6, .half_open = 5});
  const auto first = world.make("192.0.2.1");
  std::deque<std::shared_ptr<ServerContext>> greedy;
  for (int i = 0; i < 5; ++i) greedy.push_back(world.make("192.0.2.66"));
  const auto late = world.make("192.0.2.3");
  EXPECT_TRUE(world.there(first) && world.there(late));
  EXPECT_FALSE(world.there(greedy[0]));
  EXPECT_EQ(world.table.established(), 6u);
}

TEST(ContextTable, tells_whose_context_went_for_whose) {
  TableWorld world({.all = 1, .half_open = 5});
  const auto first = world.make("192.0.2.1");
  const auto second = world.begin("192.0.2.2");
  second->xid = 0x1234;
  static std::string told;
  set_trace_sink([](Reason reason, std::string_view where, std::string_view detail) {
    if (reason == Reason::GssContextEvicted) told = std::string(where) + ": " + std::string(detail);
  });
  EXPECT_TRUE(world.table.establish(second, world.now));
  set_trace_sink(nullptr);
  EXPECT_EQ(told, "192.0.2.1: for one of 192.0.2.2, xid 0x00001234");
}

TEST(ContextTable, takes_the_oldest_when_everybody_has_one) {
  TableWorld world({.all = 3, .half_open = 5});
  std::deque<std::shared_ptr<ServerContext>> all;
  for (int i = 0; i < 10; ++i) all.push_back(world.make("192.0.2." + std::to_string(i)));
  EXPECT_EQ(world.table.established(), 3u);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(world.there(all[i]), i >= 7) << i;
}

TEST(ContextTable, bounds_what_is_half_open_without_touching_what_is_established) {
  TableWorld world({.all = 100, .half_open = 4});
  const auto established = world.make("192.0.2.66");
  const auto honest = world.make_half_open("192.0.2.1");
  std::deque<std::shared_ptr<ServerContext>> flood;
  for (int i = 0; i < 50; ++i) flood.push_back(world.make_half_open("192.0.2.66"));
  EXPECT_EQ(world.table.half_open(), 4u);
  EXPECT_TRUE(world.there(established) && world.there(honest) && world.there(flood.back()));
  EXPECT_FALSE(world.table.establish(flood.front(), world.now)) << "it was removed";
  EXPECT_TRUE(world.table.establish(honest, world.now));
  flood.clear();
  EXPECT_LE(world.realm->alive, 6u) << "nothing is kept of the others";
}

TEST(ContextTable, forgets_what_is_not_established_in_time_and_what_has_expired) {
  TableWorld world({.all = 1000, .half_open = 1000});
  std::deque<std::shared_ptr<ServerContext>> old;
  for (int i = 0; i < 64; ++i) {
    old.push_back(world.make_half_open("192.0.2.1"));
    old.push_back(world.make_half_open("192.0.2.1"));
    old.back()->expires = world.now + 1h;
    world.table.establish(old.back(), world.now);
  }
  world.now += ContextTable::kHalfOpenTime + 1s;
  for (int i = 0; i < 512; ++i) world.make("192.0.2.2");
  EXPECT_EQ(world.table.half_open(), 0u);
  EXPECT_EQ(world.table.established(), 64u + 512);
  world.now += 1h;
  for (int i = 0; i < 64; ++i) world.make("192.0.2.3");
  EXPECT_EQ(world.table.established(), 512u + 64);
}

TEST(ContextTable, knows_a_handle_only_as_it_was_given) {
  TableWorld world({});
  const auto context = world.make("192.0.2.1");
  ServerContext::Handle handle = context->handle;
  handle[15] ^= std::byte{1};
  EXPECT_EQ(world.table.find(handle), nullptr);
  EXPECT_EQ(world.table.find(Bytes(context->handle).first(15)), nullptr);
  EXPECT_EQ(world.table.find({}), nullptr);
  world.table.remove(*context);
  world.table.remove(*context);
  EXPECT_EQ(world.table.find(context->handle), nullptr);
  EXPECT_EQ(world.table.established(), 0u);
}

}  // namespace
}  // namespace stag::rpc
