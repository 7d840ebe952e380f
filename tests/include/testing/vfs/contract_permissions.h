// Contract of every FileSystem, part 3: who may do what.
#pragma once

#include "testing/vfs/fixture.h"

namespace stag::vfs::testing {

TEST_P(VfsContract, a_new_object_belongs_to_its_maker) {
  SKIP_WITHOUT_USERS();
  const Node file = make_file(alice, root(), "file", 0644);
  EXPECT_EQ(file.attributes.uid, 1000u);
  EXPECT_EQ(file.attributes.gid, 1000u);
  SetAttributes given;
  given.uid = 7;
  given.gid = 8;
  EXPECT_EQ(good(fs().mkdir(as(alice), root(), "hers", given)).node.attributes.uid, 1000u);
  const Node roots = good(fs().mkdir(as(root_user), root(), "roots", given)).node;
  EXPECT_EQ(roots.attributes.uid, 7u);
  EXPECT_EQ(roots.attributes.gid, 8u);
}

// Its times tell everybody the verifier.
TEST_P(VfsContract, an_exclusive_create_is_not_repeated_by_another_user) {
  SKIP_WITHOUT_USERS();
  const Node directory = make_directory(root(), "d", 0777);
  CreateHow how;
  how.mode = CreateMode::Exclusive;
  how.verifier.fill(std::byte{3});
  how.attributes.mode = 0600;
  const Handle file = good(fs().create(as(alice), directory.handle, "hers", how)).node.handle;
  EXPECT_EQ(status(fs().create(as(bob), directory.handle, "hers", how)), Status::Exists);
  EXPECT_EQ(good(fs().create(as(alice), directory.handle, "hers", how)).node.handle, file);
}

TEST_P(VfsContract, mode_bits_decide_by_class) {
  SKIP_WITHOUT_USERS();
  struct Row {
    std::uint32_t mode;
    std::uint32_t owner, group, other;  // access bits granted
  };
  constexpr std::uint32_t kWrite = access::kModify | access::kExtend;
  const Row rows[] = {{0000, 0, 0, 0},
                      {0400, access::kRead, 0, 0},
                      {0040, 0, access::kRead, 0},
                      {0004, 0, 0, access::kRead},
                      {0260, kWrite, access::kRead | kWrite, 0},
                      {0751, access::kRead | kWrite | access::kExecute,
                       access::kRead | access::kExecute, access::kExecute},
                      {0077, 0, access::kRead | kWrite | access::kExecute,
                       access::kRead | kWrite | access::kExecute}};
  const Node file = make_file(alice, root(), "file", 0644);
  for (const Row& row : rows) {
    good(fs().set_attributes(as(alice), file.handle, mode_of(row.mode), std::nullopt));
    EXPECT_EQ(good(fs().access(as(alice), file.handle, access::kAll)).granted, row.owner)
        << std::oct << row.mode;
    EXPECT_EQ(good(fs().access(as(friend_of_alice), file.handle, access::kAll)).granted, row.group)
        << std::oct << row.mode;
    EXPECT_EQ(good(fs().access(as(bob), file.handle, access::kAll)).granted, row.other)
        << std::oct << row.mode;
  }
  EXPECT_EQ(good(fs().access(as(bob), file.handle, access::kRead)).granted, access::kRead);
}

TEST_P(VfsContract, access_of_directories_speaks_of_lookup_and_delete) {
  SKIP_WITHOUT_USERS();
  const Node directory = make_directory(root(), "d", 0755);
  EXPECT_EQ(good(fs().access(as(bob), directory.handle, access::kAll)).granted,
            access::kRead | access::kLookup);
  EXPECT_EQ(good(fs().access(as(root_user), directory.handle, access::kAll)).granted,
            access::kAll & ~access::kExecute);
}

TEST_P(VfsContract, the_owner_reads_and_writes_despite_the_mode) {
  SKIP_WITHOUT_USERS();
  const Node file = make_file(alice, root(), "file", 0444);
  const Rope text = Rope::copy_of(bytes_of("text"));
  good(fs().write(as(alice), file.handle, 0, text, Stability::Unstable));
  EXPECT_EQ(status(fs().write(as(bob), file.handle, 0, text, Stability::Unstable)), Status::Access);
  good(fs().set_attributes(as(alice), file.handle, mode_of(0000), std::nullopt));
  EXPECT_EQ(good(fs().read(as(alice), file.handle, 0, 4)).data, text);
  EXPECT_EQ(status(fs().read(as(bob), file.handle, 0, 4)), Status::Access);
  EXPECT_EQ(good(fs().read(as(root_user), file.handle, 0, 4)).data, text);
}

TEST_P(VfsContract, execute_permission_suffices_to_read) {
  SKIP_WITHOUT_USERS();
  const Node file = make_file(alice, root(), "program", 0711);
  write(file.handle, 0, "#!");
  EXPECT_EQ(good(fs().read(as(bob), file.handle, 0, 2)).data.size(), 2u);
  EXPECT_EQ(good(fs().access(as(bob), file.handle, access::kAll)).granted, access::kExecute);
}

TEST_P(VfsContract, names_need_search_and_write_permission_of_their_directory) {
  SKIP_WITHOUT_USERS();
  const Node directory = make_directory(root(), "d", 0700);
  make_file(directory.handle, "file");
  EXPECT_EQ(status(fs().lookup(as(alice), directory.handle, "file")), Status::Access);
  EXPECT_EQ(status(fs().lookup(as(alice), directory.handle, "absent")), Status::Access);
  Names names;
  EXPECT_EQ(status(fs().list(as(alice), directory.handle, {}, names)), Status::Access);
  good(fs().set_attributes(as(root_user), directory.handle, mode_of(0711), std::nullopt));
  good(fs().lookup(as(alice), directory.handle, "file"));
  EXPECT_EQ(status(fs().list(as(alice), directory.handle, {}, names)), Status::Access);
  good(fs().set_attributes(as(root_user), directory.handle, mode_of(0755), std::nullopt));
  good(fs().list(as(alice), directory.handle, {}, names));
  EXPECT_EQ(status(fs().create(as(alice), directory.handle, "new", {})), Status::Access);
  EXPECT_EQ(status(fs().mkdir(as(alice), directory.handle, "new", {})), Status::Access);
  EXPECT_EQ(status(fs().symlink(as(alice), directory.handle, "new", "x", {})), Status::Access);
  EXPECT_EQ(status(fs().remove(as(alice), directory.handle, "file")), Status::Access);
  EXPECT_EQ(status(fs().rename(as(alice), directory.handle, "file", root(), "mine")),
            Status::Access);
  EXPECT_EQ(status(fs().rename(as(alice), directory.handle, "absent", root(), "mine")),
            Status::NoEntry);
}

TEST_P(VfsContract, who_may_not_search_a_directory_learns_nothing_of_what_is_in_it) {
  SKIP_WITHOUT_USERS();
  const Node directory = make_directory(root(), "d", 0766);
  make_file(directory.handle, "file");
  make_directory(directory.handle, "inner");
  make_file(alice, root(), "hers", 0644);
  for (const char* name : {"file", "inner", "absent"}) {
    EXPECT_EQ(status(fs().remove(as(alice), directory.handle, name)), Status::Access) << name;
    EXPECT_EQ(status(fs().rmdir(as(alice), directory.handle, name)), Status::Access) << name;
    EXPECT_EQ(status(fs().rename(as(alice), root(), "hers", directory.handle, name)),
              Status::Access)
        << name;
  }
}

TEST_P(VfsContract, a_sticky_directory_protects_what_others_own) {
  SKIP_WITHOUT_USERS();
  make_file(alice, root(), "hers", 0666);
  make_file(bob, root(), "his", 0666);
  EXPECT_EQ(status(fs().remove(as(bob), root(), "hers")), Status::Perm);
  EXPECT_EQ(status(fs().rename(as(bob), root(), "hers", root(), "taken")), Status::Perm);
  EXPECT_EQ(status(fs().rename(as(bob), root(), "his", root(), "hers")), Status::Perm);
  good(fs().remove(as(alice), root(), "hers"));
  good(fs().remove(as(root_user), root(), "his"));
}

TEST_P(VfsContract, attributes_are_changed_by_those_who_may) {
  SKIP_WITHOUT_USERS();
  const Node file = make_file(alice, root(), "file", 0644);
  const auto set = [&](const Credentials& who, const SetAttributes& changes) {
    return status(fs().set_attributes(as(who), file.handle, changes, std::nullopt));
  };
  SetAttributes changes = mode_of(0600);
  EXPECT_EQ(set(bob, changes), Status::Perm);
  changes = {};
  changes.uid = 1001;
  EXPECT_EQ(set(alice, changes), Status::Perm) << "only root gives files away";
  EXPECT_EQ(set(bob, changes), Status::Perm);
  changes = {};
  changes.gid = 4242;
  EXPECT_EQ(set(alice, changes), Status::Perm) << "not a group of hers";
  changes = {};
  changes.modified = {SetTime::How::To, {5, 0}};
  EXPECT_EQ(set(bob, changes), Status::Perm);
  changes.modified.how = SetTime::How::Now;
  EXPECT_EQ(set(bob, changes), Status::Access);
  changes = {};
  changes.size = 0;
  EXPECT_EQ(set(bob, changes), Status::Access);
  EXPECT_EQ(set(alice, changes), std::nullopt);
  changes = {};
  changes.uid = 1001;
  changes.gid = 1001;
  EXPECT_EQ(set(root_user, changes), std::nullopt);
  EXPECT_EQ(attributes(file.handle).uid, 1001u);
}

TEST_P(VfsContract, an_owner_truncates_what_its_mode_forbids) {
  SKIP_WITHOUT_USERS();
  const Node file = make_file(alice, root(), "file", 0400);
  SetAttributes changes;
  changes.size = 5;
  good(fs().set_attributes(as(alice), file.handle, changes, std::nullopt));
  EXPECT_EQ(attributes(file.handle).size, 5u);
  EXPECT_EQ(status(fs().set_attributes(as(bob), file.handle, changes, std::nullopt)),
            Status::Access);
}

TEST_P(VfsContract, a_group_member_passes_files_to_the_group) {
  SKIP_WITHOUT_USERS();
  const Node file = make_file(friend_of_alice, root(), "file", 0644);
  SetAttributes changes;
  changes.gid = 1000;
  good(fs().set_attributes(as(friend_of_alice), file.handle, changes, std::nullopt));
  EXPECT_EQ(attributes(file.handle).gid, 1000u);
}

TEST_P(VfsContract, a_set_group_id_directory_hands_its_group_down) {
  SKIP_WITHOUT_USERS();
  const Node directory = make_directory(root(), "shared");
  SetAttributes changes = mode_of(02777);
  changes.gid = 1000;
  good(fs().set_attributes(as(root_user), directory.handle, changes, std::nullopt));
  good(fs().set_attributes(as(root_user), directory.handle, mode_of(02777), std::nullopt));
  EXPECT_EQ(make_file(bob, directory.handle, "file", 0644).attributes.gid, 1000u);
  const Node inner = good(fs().mkdir(as(bob), directory.handle, "inner", mode_of(0755))).node;
  EXPECT_EQ(inner.attributes.gid, 1000u);
  EXPECT_EQ(inner.attributes.mode, 02755u);
}

TEST_P(VfsContract, writing_takes_set_id_bits_away) {
  SKIP_WITHOUT_USERS();
  const Node file = make_file(alice, root(), "file", 0777);
  good(fs().set_attributes(as(root_user), file.handle, mode_of(06777), std::nullopt));
  good(fs().write(as(bob), file.handle, 0, Rope::copy_of(bytes_of("x")), Stability::Unstable));
  EXPECT_EQ(attributes(file.handle).mode, 0777u);
  good(fs().set_attributes(as(root_user), file.handle, mode_of(06777), std::nullopt));
  SetAttributes changes;
  changes.uid = 1001;
  good(fs().set_attributes(as(root_user), file.handle, changes, std::nullopt));
  EXPECT_EQ(attributes(file.handle).mode, 0777u);
}

TEST_P(VfsContract, an_unchecked_create_truncates_only_for_those_who_may_write) {
  SKIP_WITHOUT_USERS();
  const Node file = make_file(alice, root(), "file", 0644);
  write(file.handle, 0, "content");
  CreateHow how;
  how.mode = CreateMode::Unchecked;
  how.attributes.size = 0;
  EXPECT_EQ(status(fs().create(as(bob), root(), "file", how)), Status::Access);
  EXPECT_EQ(attributes(file.handle).size, 7u);
}

}  // namespace stag::vfs::testing
