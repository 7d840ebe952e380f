#include "vfs/groups.h"

#include <gtest/gtest.h>

namespace stag::vfs {
namespace {

TEST(Groups, are_equal_by_value_shared_or_not) {
  Groups own{1, 2};
  const auto list = std::make_shared<const Groups::List>(Groups::List{1, 2, 3});
  const Groups shared(list);
  EXPECT_FALSE(own == shared);
  own.push_back(3);
  EXPECT_EQ(own, shared);
  EXPECT_EQ(shared, Groups(list));
  EXPECT_EQ(Groups(std::make_shared<const Groups::List>()), Groups());
  EXPECT_TRUE(shared.has(3));
  EXPECT_FALSE(shared.has(4));
}

TEST(Groups, may_be_more_than_lie_inside) {
  Groups many;
  for (std::uint32_t id = 0; id < 40; ++id) {
    many.push_back(id);
    ASSERT_EQ(many.size(), id + 1);
  }
  for (std::uint32_t id = 0; id < 40; ++id) EXPECT_EQ(many.data()[id], id);
  Groups longer = many;
  longer.push_back(40);
  EXPECT_EQ(many.size(), 40u);
  EXPECT_EQ(longer.size(), 41u);
}

TEST(Groups, leave_nothing_behind_when_they_are_moved) {
  for (Groups from : {Groups{1, 2}, Groups(std::make_shared<const Groups::List>(20, 7))}) {
    const Groups before = from;
    Groups to = std::move(from);
    EXPECT_EQ(to, before);
    EXPECT_TRUE(from.empty());
    EXPECT_EQ(from, Groups());
    from = std::move(to);
    EXPECT_EQ(from, before);
    EXPECT_TRUE(to.empty());
    Groups& same = from;
    from = same;
    EXPECT_EQ(from, before);
  }
}

TEST(Groups, share_a_list_with_their_copies) {
  const auto list = std::make_shared<const Groups::List>(Groups::List(100, 7));
  const Groups shared(list);
  Groups copy = shared;
  EXPECT_EQ(copy.data(), list->data());
  copy = Groups{1};
  EXPECT_EQ(copy, Groups{1});
  EXPECT_EQ(shared.size(), 100u);
}

}  // namespace
}  // namespace stag::vfs
