// Contract of every FileSystem, part 5: access control lists, of those that have them.
#pragma once

#include "testing/vfs/fixture.h"

namespace stag::vfs::testing {

using Tag = AclEntry::Tag;

// 0640, but user 1001 may read and write.
inline Acl for_bob() {
  return acl_of({{Tag::Owner, 0, 6},
                 {Tag::User, 1001, 6},
                 {Tag::OwningGroup, 0, 4},
                 {Tag::Mask, 0, 6},
                 {Tag::Others, 0, 0}});
}

class VfsAclContract : public VfsContract {
 protected:
  Acls acls(const Handle& object) { return good(fs().acls(as(root_user), object)).acls; }
  std::optional<Status> set(const Credentials& who, const Handle& object, const SetAcls& changes) {
    return status(fs().set_acls(as(who), object, changes));
  }
  std::uint32_t granted(const Credentials& who, const Handle& object) {
    return good(fs().access(as(who), object, access::kAll)).granted;
  }
};

#define SKIP_WITHOUT_ACLS() \
  if (!properties().has_acls) GTEST_SKIP() << "the file system below has no access control lists"

TEST_P(VfsAclContract, a_store_without_lists_says_so) {
  if (properties().has_acls) {
    EXPECT_EQ(status(fs().acls(as(root_user), root())), std::nullopt);
    return;
  }
  EXPECT_EQ(status(fs().acls(as(root_user), root())), Status::NotSupported);
  EXPECT_EQ(set(root_user, root(), {Acl::of_mode(0755), {}}), Status::NotSupported);
}

TEST_P(VfsAclContract, an_object_without_a_list_shows_its_mode_as_one) {
  SKIP_WITHOUT_ACLS();
  const Node file = make_file("file", 04751);
  const Acls found = acls(file.handle);
  EXPECT_EQ(found.access, Acl::of_mode(0751));
  EXPECT_TRUE(found.defaults.empty());
  EXPECT_EQ(good(fs().acls(as(bob), file.handle)).attributes.file_id, file.attributes.file_id);
  const Node link = good(fs().symlink(as(root_user), root(), "link", "file", {})).node;
  EXPECT_EQ(acls(link.handle).access, Acl::of_mode(0777));
  EXPECT_EQ(set(root_user, link.handle, {for_bob(), {}}), Status::NotSupported);
}

TEST_P(VfsAclContract, a_list_is_kept_and_the_mode_follows_it) {
  SKIP_WITHOUT_ACLS();
  const Node file = make_file("file", 04600);
  const Change change = good(fs().set_acls(as(root_user), file.handle, {for_bob(), {}}));
  ASSERT_TRUE(change.after.has_value());
  EXPECT_EQ(change.after->mode, 04660u) << "the group's bits are the mask";
  EXPECT_EQ(acls(file.handle).access, for_bob());
  ASSERT_EQ(set(root_user, file.handle, {Acl::of_mode(0604), {}}), std::nullopt);
  EXPECT_EQ(attributes(file.handle).mode, 04604u);
  EXPECT_EQ(acls(file.handle).access, Acl::of_mode(0604));
}

TEST_P(VfsAclContract, the_empty_list_takes_a_list_away_and_leaves_the_mode) {
  SKIP_WITHOUT_ACLS();
  const Node file = make_file("file", 0600);
  ASSERT_EQ(set(root_user, file.handle, {for_bob(), {}}), std::nullopt);
  ASSERT_EQ(set(root_user, file.handle, {Acl(), {}}), std::nullopt);
  EXPECT_EQ(acls(file.handle).access, Acl::of_mode(0660));
  EXPECT_EQ(attributes(file.handle).mode, 0660u);
  EXPECT_EQ(set(root_user, file.handle, {Acl(), Acl()}), std::nullopt) << "nothing is there to go";
}

TEST_P(VfsAclContract, a_change_of_the_mode_changes_owner_mask_and_others) {
  SKIP_WITHOUT_ACLS();
  const Node file = make_file("file", 0600);
  ASSERT_EQ(set(root_user, file.handle, {for_bob(), {}}), std::nullopt);
  good(fs().set_attributes(as(root_user), file.handle, mode_of(0745), std::nullopt));
  EXPECT_EQ(acls(file.handle).access, acl_of({{Tag::Owner, 0, 7},
                                              {Tag::User, 1001, 6},
                                              {Tag::OwningGroup, 0, 4},
                                              {Tag::Mask, 0, 4},
                                              {Tag::Others, 0, 5}}));
  EXPECT_EQ(attributes(file.handle).mode, 0745u);
}

TEST_P(VfsAclContract, a_list_decides_who_may) {
  SKIP_WITHOUT_USERS();
  SKIP_WITHOUT_ACLS();
  const Node file = make_file(alice, root(), "file", 0600);
  const Rope text = Rope::copy_of(bytes_of("text"));
  EXPECT_EQ(status(fs().write(as(bob), file.handle, 0, text, Stability::Unstable)), Status::Access);
  ASSERT_EQ(set(alice, file.handle, {for_bob(), {}}), std::nullopt);
  constexpr std::uint32_t kWrite = access::kModify | access::kExtend;
  EXPECT_EQ(granted(bob, file.handle), access::kRead | kWrite);
  EXPECT_EQ(granted(friend_of_alice, file.handle), access::kRead);
  EXPECT_EQ(granted({1003, 1003, {}}, file.handle), 0u);
  good(fs().write(as(bob), file.handle, 0, text, Stability::Unstable));
  EXPECT_EQ(good(fs().read(as(bob), file.handle, 0, 4)).data, text);
  good(fs().set_attributes(as(alice), file.handle, mode_of(0640), std::nullopt));
  EXPECT_EQ(granted(bob, file.handle), access::kRead) << "the mask holds him back";
  EXPECT_EQ(status(fs().write(as(bob), file.handle, 0, text, Stability::Unstable)), Status::Access);
}

TEST_P(VfsAclContract, lists_belong_to_the_owner) {
  SKIP_WITHOUT_USERS();
  SKIP_WITHOUT_ACLS();
  const Node file = make_file(alice, root(), "file", 0666);
  EXPECT_EQ(set(bob, file.handle, {for_bob(), {}}), Status::Perm);
  EXPECT_EQ(acls(file.handle).access, Acl::of_mode(0666));
  EXPECT_EQ(set(alice, file.handle, {{}, for_bob()}), Status::Access) << "it is no directory";
  EXPECT_EQ(set(alice, file.handle, {{}, Acl()}), std::nullopt);
}

TEST_P(VfsAclContract, new_objects_begin_with_the_default_list_of_their_directory) {
  SKIP_WITHOUT_ACLS();
  const Node directory = make_directory(root(), "d", 0755);
  ASSERT_EQ(set(root_user, directory.handle, {{}, for_bob()}), std::nullopt);
  EXPECT_EQ(acls(directory.handle).access, Acl::of_mode(0755));
  EXPECT_EQ(acls(directory.handle).defaults, for_bob());
  const Node file = make_file(directory.handle, "file", 0644);
  EXPECT_EQ(file.attributes.mode, 0640u);
  Acl expected = for_bob();
  expected.set_mode(0640);
  EXPECT_EQ(acls(file.handle).access, expected);
  EXPECT_TRUE(acls(file.handle).defaults.empty());
  const Node inner = make_directory(directory.handle, "inner", 0777);
  EXPECT_EQ(inner.attributes.mode, 0660u);
  EXPECT_EQ(acls(inner.handle).access, for_bob());
  EXPECT_EQ(acls(inner.handle).defaults, for_bob());
  const Node link = good(fs().symlink(as(root_user), directory.handle, "link", "x", {})).node;
  EXPECT_EQ(acls(link.handle).access, Acl::of_mode(0777));
  ASSERT_EQ(set(root_user, directory.handle, {{}, Acl()}), std::nullopt);
  EXPECT_EQ(acls(make_file(directory.handle, "plain", 0644).handle).access, Acl::of_mode(0644));
}

TEST_P(VfsAclContract, a_directory_is_searched_as_its_list_says) {
  SKIP_WITHOUT_USERS();
  SKIP_WITHOUT_ACLS();
  const Node directory = good(fs().mkdir(as(alice), root(), "d", mode_of(0700))).node;
  make_file(alice, directory.handle, "file", 0644);
  EXPECT_EQ(status(fs().lookup(as(bob), directory.handle, "file")), Status::Access);
  Acl open = acl_of({{Tag::Owner, 0, 7},
                     {Tag::OwningGroup, 0, 0},
                     {Tag::Group, 1001, 5},
                     {Tag::Mask, 0, 7},
                     {Tag::Others, 0, 0}});
  ASSERT_EQ(set(alice, directory.handle, {open, {}}), std::nullopt);
  good(fs().lookup(as(bob), directory.handle, "file"));
  EXPECT_EQ(status(fs().create(as(bob), directory.handle, "new", {})), Status::Access);
  EXPECT_EQ(granted(bob, directory.handle), access::kRead | access::kLookup);
}

TEST_P(VfsAclContract, a_long_list_is_kept_whole) {
  SKIP_WITHOUT_ACLS();
  std::vector<AclEntry> entries{
      {Tag::Owner, 0, 7}, {Tag::OwningGroup, 0, 5}, {Tag::Mask, 0, 7}, {Tag::Others, 0, 0}};
  for (std::uint32_t id = 1; id <= 300; ++id) entries.push_back({Tag::User, id, id % 8});
  const Acl acl = acl_of(entries);
  const Node file = make_file("file", 0600);
  const auto answer = set(root_user, file.handle, {acl, {}});
  if (answer == Status::NoSpace) GTEST_SKIP() << "the file system below has no room for it";
  ASSERT_EQ(answer, std::nullopt);
  EXPECT_EQ(acls(file.handle).access, acl);
}

}  // namespace stag::vfs::testing
