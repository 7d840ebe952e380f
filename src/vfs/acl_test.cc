#include "vfs/acl.h"

#include <gtest/gtest.h>

namespace stag::vfs {
namespace {

using Tag = AclEntry::Tag;

const AclEntry kOwner{Tag::Owner, 0, 6}, kGroup{Tag::OwningGroup, 0, 4}, kMask{Tag::Mask, 0, 5},
    kOthers{Tag::Others, 0, 0};

TEST(Acl, is_put_in_canonical_order) {
  const auto acl =
      Acl::from({kOthers, {Tag::User, 9, 7}, kMask, kGroup, {Tag::User, 3, 1}, kOwner});
  ASSERT_TRUE(acl.has_value());
  const std::vector<AclEntry> expected{kOwner, {Tag::User, 3, 1}, {Tag::User, 9, 7}, kGroup, kMask,
                                       kOthers};
  EXPECT_TRUE(
      std::equal(acl->entries().begin(), acl->entries().end(), expected.begin(), expected.end()));
  EXPECT_FALSE(acl->minimal());
}

TEST(Acl, is_empty_without_entries) {
  ASSERT_TRUE(Acl::from({}).has_value());
  EXPECT_TRUE(Acl::from({})->empty());
}

TEST(Acl, is_refused_when_incomplete) {
  const AclEntry user{Tag::User, 3, 1}, group{Tag::Group, 3, 1};
  const std::vector<AclEntry> cases[] = {
      {kOwner, kGroup},                                       // nothing for others
      {kOwner, kOthers},                                      // nor for the group
      {kGroup, kOthers, kMask},                               // nor for the owner
      {kOwner, kOwner, kGroup, kOthers},                      // twice
      {kOwner, user, user, kGroup, kMask, kOthers},           // a user twice
      {kOwner, user, kGroup, kOthers},                        // a name, no mask
      {kOwner, group, kGroup, kOthers},                       // a name, no mask
      {kOwner, kGroup, kMask, kMask, kOthers},                // two masks
      {{Tag::Owner, 0, 8}, kGroup, kOthers},                  // permissions of four bits
      {{Tag::Owner, 1, 7}, kGroup, kOthers},                  // an id where none belongs
      {kOwner, kGroup, kOthers, {Tag(0x40), 0, 0}},           // an unknown tag
      {kOwner, kGroup, kOthers, {Tag(0x1001), 0, 0}},         // an unknown tag
      {kOwner, {Tag::User, ~0u, 1}, kGroup, kMask, kOthers},  // no caller can be that user
  };
  for (const auto& entries : cases)
    EXPECT_FALSE(Acl::from(entries).has_value()) << &entries - cases;
}

TEST(Acl, shows_owner_mask_and_others_in_a_mode) {
  EXPECT_EQ(Acl::of_mode(07751).mode(), 0751u);
  EXPECT_TRUE(Acl::of_mode(0751).minimal());
  Acl acl = *Acl::from({kOwner, kGroup, kMask, kOthers});
  EXPECT_EQ(acl.mode(), 0650u);
  acl.set_mode(0123);
  EXPECT_EQ(acl, *Acl::from({{Tag::Owner, 0, 1}, kGroup, {Tag::Mask, 0, 2}, {Tag::Others, 0, 3}}));
  Acl none;
  none.set_mode(0777);
  EXPECT_TRUE(none.empty());
}

TEST(Acl, is_inherited_as_far_as_the_mode_asked_for_allows) {
  const Acl acl = *Acl::from({{Tag::Owner, 0, 7}, {Tag::User, 5, 7}, kGroup, kMask, kOthers});
  const Acl made = acl.inherited(0644);
  EXPECT_EQ(made.mode(), 0640u);
  EXPECT_EQ(made.entries()[1], (AclEntry{Tag::User, 5, 7})) << "the mask holds it back";
  EXPECT_EQ(Acl::of_mode(0755).inherited(0640).mode(), 0640u);
  EXPECT_TRUE(Acl().inherited(0777).empty());
}

TEST(Acl, asks_the_first_class_that_the_caller_is_in) {
  const Acl acl = *Acl::from({{Tag::Owner, 0, 4},
                              {Tag::User, 10, 7},
                              {Tag::User, 11, 0},
                              {Tag::OwningGroup, 0, 2},
                              {Tag::Group, 20, 4},
                              {Tag::Group, 21, 6},
                              {Tag::Mask, 0, 6},
                              {Tag::Others, 0, 7}});
  const auto may = [&](const Credentials& who, std::uint32_t wanted) {
    return acl.permits(1, 2, who, wanted);
  };
  EXPECT_TRUE(may({1, 9, {}}, 4));
  EXPECT_FALSE(may({1, 9, {}}, 2)) << "the owner's entry, whatever others may";
  EXPECT_TRUE(may({10, 9, {}}, 6));
  EXPECT_FALSE(may({10, 9, {}}, 1)) << "masked";
  EXPECT_FALSE(may({11, 21, {}}, 4)) << "a user's entry goes before a group's";
  EXPECT_TRUE(may({12, 2, {}}, 2));
  EXPECT_TRUE(may({12, 2, {20}}, 4));
  EXPECT_FALSE(may({12, 2, {20}}, 6)) << "no single group allows both";
  EXPECT_TRUE(may({12, 2, {20, 21}}, 6));
  EXPECT_FALSE(may({12, 9, {20}}, 1)) << "members are no strangers";
  EXPECT_TRUE(may({12, 9, {}}, 7));
}

}  // namespace
}  // namespace stag::vfs
