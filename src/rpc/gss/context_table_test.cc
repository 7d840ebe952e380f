// Bounds of the server's contexts, and whose go.
#include "rpc/gss/context_table.h"

#include <gtest/gtest.h>

#include <deque>

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
    return table.add(address, std::make_unique<FakeAcceptorContext>(realm), now);
  }
  std::shared_ptr<ServerContext> make(const std::string& address) {
    auto made = begin(address);
    EXPECT_TRUE(table.establish(*made));
    return made;
  }
  bool there(const std::shared_ptr<ServerContext>& context) const {
    return table.find(context->handle) == context;
  }

  std::shared_ptr<FakeRealm> realm = std::make_shared<FakeRealm>();
  ContextTable table;
  TimePoint now{1h};
};

TEST(ContextTable, keeps_as_many_contexts_of_an_address_as_it_may_have) {
  TableWorld world({.all = 100, .of_address = 3, .half_open = 5});
  std::deque<std::shared_ptr<ServerContext>> own;
  const auto other = world.make("192.0.2.2");
  for (int i = 0; i < 3; ++i) own.push_back(world.make("192.0.2.1"));
  own[0]->used(world.now + 1s);
  world.now += 2s;
  const auto fourth = world.make("192.0.2.1");
  EXPECT_TRUE(world.there(own[0])) << "was used";
  EXPECT_FALSE(world.there(own[1]));
  EXPECT_TRUE(world.there(own[2]) && world.there(fourth) && world.there(other));
  EXPECT_EQ(world.table.established(), 4u);
}

TEST(ContextTable, takes_from_the_address_that_has_most) {
  TableWorld world({.all = 6, .of_address = 6, .half_open = 5});
  const auto first = world.make("192.0.2.1");
  std::deque<std::shared_ptr<ServerContext>> greedy;
  for (int i = 0; i < 5; ++i) greedy.push_back(world.make("192.0.2.66"));
  const auto late = world.make("192.0.2.3");
  EXPECT_TRUE(world.there(first) && world.there(late));
  EXPECT_FALSE(world.there(greedy[0]));
  EXPECT_EQ(world.table.established(), 6u);
}

TEST(ContextTable, takes_the_one_of_another_when_everybody_has_one) {
  TableWorld world({.all = 3, .of_address = 3, .half_open = 5});
  std::deque<std::shared_ptr<ServerContext>> all;
  for (int i = 0; i < 10; ++i) all.push_back(world.make("192.0.2." + std::to_string(i)));
  EXPECT_EQ(world.table.established(), 3u);
  EXPECT_TRUE(world.there(all.back()));
}

TEST(ContextTable, bounds_what_is_half_open_without_touching_what_is_established) {
  TableWorld world({.all = 100, .of_address = 100, .half_open = 4});
  const auto established = world.make("192.0.2.66");
  const auto honest = world.begin("192.0.2.1");
  std::deque<std::shared_ptr<ServerContext>> flood;
  for (int i = 0; i < 50; ++i) flood.push_back(world.begin("192.0.2.66"));
  EXPECT_EQ(world.table.half_open(), 4u);
  EXPECT_TRUE(world.there(established) && world.there(honest) && world.there(flood.back()));
  EXPECT_FALSE(world.table.establish(*flood.front())) << "it was removed";
  EXPECT_TRUE(world.table.establish(*honest));
  flood.clear();
  EXPECT_LE(world.realm->alive, 6u) << "nothing is kept of the others";
}

TEST(ContextTable, forgets_what_is_not_established_in_time_and_what_has_expired) {
  TableWorld world({.all = 1000, .of_address = 1000, .half_open = 1000});
  std::deque<std::shared_ptr<ServerContext>> old;
  for (int i = 0; i < 64; ++i) {
    old.push_back(world.begin("192.0.2.1"));
    old.push_back(world.begin("192.0.2.1"));
    old.back()->expires = world.now + 1h;
    world.table.establish(*old.back());
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
