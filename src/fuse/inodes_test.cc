#include "fuse/inodes.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace stag::fuse {
namespace {

nfs::client::Handle handle(char first) {
  const std::array<std::byte, 2> bytes{static_cast<std::byte>(first), std::byte{7}};
  return *nfs::client::Handle::from(bytes);
}

TEST(Inodes, the_root_is_never_forgotten) {
  Inodes inodes(handle('r'));
  inodes.forget(Inodes::kRoot, 100);
  ASSERT_NE(inodes.find(Inodes::kRoot), nullptr);
  EXPECT_EQ(inodes.find(Inodes::kRoot)->handle, handle('r'));
  EXPECT_EQ(inodes.enter(handle('r')), Inodes::kRoot);
}

TEST(Inodes, an_object_has_one_number_until_every_lookup_is_forgotten) {
  Inodes inodes(handle('r'));
  const std::uint64_t number = inodes.enter(handle('a'));
  EXPECT_EQ(inodes.enter(handle('a')), number);
  EXPECT_EQ(inodes.number_of(handle('a')), number);
  EXPECT_NE(inodes.enter(handle('b')), number);
  inodes.forget(number, 1);
  ASSERT_NE(inodes.find(number), nullptr);
  inodes.forget(number, 1);
  EXPECT_EQ(inodes.find(number), nullptr);
  EXPECT_EQ(inodes.find(handle('a')), nullptr);
  EXPECT_EQ(inodes.number_of(handle('a')), 0u);
  EXPECT_NE(inodes.enter(handle('a')), number) << "a late use of the number would meet it";
}

TEST(Inodes, more_forgotten_than_looked_up_ends_an_object_once) {
  Inodes inodes(handle('r'));
  const std::uint64_t number = inodes.enter(handle('a'));
  inodes.forget(number, 1000);
  inodes.forget(number, 1);
  EXPECT_EQ(inodes.size(), 1u);
}

TEST(Inodes, the_last_close_of_a_file_is_told) {
  Inodes inodes(handle('r'));
  const std::uint64_t number = inodes.enter(handle('a'));
  inodes.open(*inodes.find(number));
  inodes.open(*inodes.find(number));
  EXPECT_FALSE(inodes.close(number));
  EXPECT_EQ(inodes.opens(), 1u);
  EXPECT_TRUE(inodes.close(number));
  EXPECT_FALSE(inodes.close(number)) << "closed more often than opened";
  EXPECT_EQ(inodes.opens(), 0u);
}

TEST(Inodes, one_that_is_open_stays_though_the_kernel_forgets_it) {
  Inodes inodes(handle('r'));
  const std::uint64_t number = inodes.enter(handle('a'));
  inodes.open(*inodes.find(number));
  inodes.forget(number, 1);
  ASSERT_NE(inodes.find(number), nullptr);
  EXPECT_EQ(inodes.find(number)->lookups, 0u);
  EXPECT_TRUE(inodes.close(number));
  EXPECT_EQ(inodes.find(number), nullptr);
  EXPECT_EQ(inodes.opens(), 0u);
}

TEST(Inodes, one_that_is_referred_to_stays_and_is_told_once_it_goes) {
  Inodes inodes(handle('r'));
  std::vector<std::uint64_t> gone;
  inodes.set_on_gone([&gone](std::uint64_t number) { gone.push_back(number); });
  const std::uint64_t number = inodes.enter(handle('a'));
  inodes.open(*inodes.find(number));
  {
    const Inodes::Reference one(inodes, number), other(inodes, number);
    const Inodes::Reference none(inodes, number + 1);
    inodes.forget(number, 1);
    EXPECT_TRUE(inodes.close(number)) << "it is no open";
    EXPECT_EQ(inodes.number_of(handle('a')), number);
    EXPECT_TRUE(gone.empty());
  }
  EXPECT_EQ(inodes.number_of(handle('a')), 0u);
  EXPECT_EQ(gone, std::vector<std::uint64_t>{number});
}

TEST(Inodes, the_last_name_of_an_object_leads_to_it_while_it_is_known) {
  Inodes inodes(handle('r'));
  const std::uint64_t a = inodes.enter(handle('a')), b = inodes.enter(handle('b'));
  inodes.call(a, Inodes::kRoot, "name");
  inodes.call(b, a, "name");
  EXPECT_EQ(inodes.named(Inodes::kRoot, "name"), a);
  EXPECT_EQ(inodes.named(a, "name"), b);
  EXPECT_EQ(inodes.named(b, "name"), 0u);
  inodes.call(a, Inodes::kRoot, "other");
  EXPECT_EQ(inodes.named(Inodes::kRoot, "name"), 0u);
  EXPECT_EQ(inodes.named(Inodes::kRoot, "other"), a);
  inodes.forget(a, 1);
  EXPECT_EQ(inodes.named(Inodes::kRoot, "other"), 0u);
}

TEST(Inodes, a_name_that_was_replaced_leads_to_the_object_that_has_it) {
  Inodes inodes(handle('r'));
  const std::uint64_t a = inodes.enter(handle('a')), b = inodes.enter(handle('b'));
  inodes.call(a, Inodes::kRoot, "old");
  inodes.call(b, Inodes::kRoot, "new");
  inodes.rename(Inodes::kRoot, "new", Inodes::kRoot, "old");
  inodes.rename(Inodes::kRoot, "unknown", Inodes::kRoot, "old");
  EXPECT_EQ(inodes.named(Inodes::kRoot, "old"), b);
  EXPECT_EQ(inodes.named(Inodes::kRoot, "new"), 0u);
  inodes.forget(a, 1);
  EXPECT_EQ(inodes.named(Inodes::kRoot, "old"), b);
}

}  // namespace
}  // namespace stag::fuse
