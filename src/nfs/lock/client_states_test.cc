#include "nfs/lock/client_states.h"

#include <gtest/gtest.h>

#include <string>

namespace stag::nfs::lock {
namespace {

TEST(ClientStatesTest, forgets_of_the_address_that_has_most_the_name_heard_of_longest_ago) {
  ClientStates states(5);
  const auto note = [&](const char* address, const char* name) { states.of({address, name}); };
  const auto knows = [&](const char* address, const char* name) {
    return states.find({address, name}) != nullptr;
  };
  states.of({"192.0.2.1", "one"}).state = 7;
  for (const char* const name : {"a", "b", "c", "d"}) note("198.51.100.1", name);
  note("198.51.100.1", "a");
  note("198.51.100.1", "e");
  EXPECT_FALSE(knows("198.51.100.1", "b")) << "a was heard of again";
  note("192.0.2.2", "two");
  EXPECT_FALSE(knows("198.51.100.1", "c"));
  for (const char* const name : {"a", "d", "e"}) EXPECT_TRUE(knows("198.51.100.1", name)) << name;
  ASSERT_TRUE(knows("192.0.2.1", "one"));
  EXPECT_EQ(states.find({"192.0.2.1", "one"})->state, 7);
  EXPECT_TRUE(knows("192.0.2.2", "two"));
  EXPECT_FALSE(knows("192.0.2.2", "one")) << "the address is part of it";
  EXPECT_EQ(states.size(), 5u);
}

TEST(ClientStatesTest, are_bounded_where_each_address_has_one) {
  ClientStates states(3);
  for (int i = 0; i < 100; ++i) states.of({"192.0.2." + std::to_string(i), "name"});
  EXPECT_EQ(states.size(), 3u);
  EXPECT_NE(states.find({"192.0.2.99", "name"}), nullptr);
}

}  // namespace
}  // namespace stag::nfs::lock
