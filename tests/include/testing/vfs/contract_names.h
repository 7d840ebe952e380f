// Contract of every FileSystem, part 1: names, objects, links and renames.
#pragma once

#include <algorithm>

#include "testing/vfs/fixture.h"

namespace stag::vfs::testing {

TEST_P(VfsContract, a_new_file_is_found_by_name_and_by_handle) {
  const Node made = make_file("hello", 0640);
  EXPECT_EQ(made.attributes.type, FileType::Regular);
  EXPECT_EQ(made.attributes.mode, 0640u);
  EXPECT_EQ(made.attributes.links, 1u);
  EXPECT_EQ(made.attributes.size, 0u);
  const Node found = find(root(), "hello");
  EXPECT_EQ(found.handle, made.handle);
  EXPECT_EQ(found.attributes.file_id, made.attributes.file_id);
  EXPECT_EQ(attributes(made.handle).file_id, made.attributes.file_id);
  EXPECT_EQ(attributes(root()).file_system_id, made.attributes.file_system_id);
  EXPECT_EQ(lookup_status(root(), "hell"), Status::NoEntry);
}

TEST_P(VfsContract, bytes_that_are_no_handle_are_refused) {
  EXPECT_EQ(status(fs().attributes(as(root_user), Handle())), Status::BadHandle);
  const Handle text = *Handle::from(bytes_of("never a handle"));
  EXPECT_EQ(status(fs().attributes(as(root_user), text)), Status::BadHandle);
  Handle cut = *Handle::from(root().bytes().first(root().size() - 1));
  EXPECT_NE(status(fs().attributes(as(root_user), cut)), std::nullopt);
}

TEST_P(VfsContract, names_are_any_bytes_but_slash_and_nul) {
  const std::string odd("\xff\xfe \n\t\"*?\x01", 9);
  make_file(odd);
  EXPECT_EQ(find(root(), odd).attributes.type, FileType::Regular);
  for (const std::string_view bad : {std::string_view("a/b"), std::string_view("/"),
                                     std::string_view("a\0b", 3), std::string_view()}) {
    EXPECT_EQ(lookup_status(root(), bad), Status::Access);
    EXPECT_EQ(status(fs().create(as(root_user), root(), bad, {})), Status::Access);
    EXPECT_EQ(status(fs().remove(as(root_user), root(), bad)), Status::Access);
  }
  EXPECT_EQ(lookup_status(root(), std::string(256, 'x')), Status::NameTooLong);
  EXPECT_EQ(status(fs().mkdir(as(root_user), root(), std::string(256, 'x'), {})),
            Status::NameTooLong);
  make_file(std::string(255, 'x'));
}

TEST_P(VfsContract, dot_and_dot_dot_stay_inside_the_export) {
  const Node directory = make_directory(root(), "a");
  const Node inner = make_directory(directory.handle, "b");
  EXPECT_EQ(find(inner.handle, ".").handle, inner.handle);
  EXPECT_EQ(find(inner.handle, "..").handle, directory.handle);
  EXPECT_EQ(find(directory.handle, "..").handle, root());
  EXPECT_EQ(find(root(), "..").handle, root());
  EXPECT_EQ(find(root(), ".").handle, root());
  for (const std::string_view dots : {".", ".."}) {
    EXPECT_EQ(status(fs().mkdir(as(root_user), inner.handle, dots, {})), Status::Exists);
    EXPECT_EQ(status(fs().rmdir(as(root_user), inner.handle, dots)), Status::Invalid);
    EXPECT_EQ(status(fs().rename(as(root_user), inner.handle, dots, root(), "x")), Status::Invalid);
  }
}

TEST_P(VfsContract, operations_on_the_wrong_kind_say_so) {
  const Node file = make_file("file");
  const Node directory = make_directory(root(), "directory");
  EXPECT_EQ(lookup_status(file.handle, "x"), Status::NotDirectory);
  EXPECT_EQ(status(fs().create(as(root_user), file.handle, "x", {})), Status::NotDirectory);
  Names names;
  EXPECT_EQ(status(fs().list(as(root_user), file.handle, {}, names)), Status::NotDirectory);
  EXPECT_EQ(status(fs().read(as(root_user), directory.handle, 0, 1)), Status::IsDirectory);
  EXPECT_EQ(status(fs().write(as(root_user), directory.handle, 0, Rope::copy_of(bytes_of("x")),
                              Stability::Unstable)),
            Status::IsDirectory);
  EXPECT_EQ(status(fs().remove(as(root_user), root(), "directory")), Status::IsDirectory);
  EXPECT_EQ(status(fs().rmdir(as(root_user), root(), "file")), Status::NotDirectory);
  EXPECT_EQ(status(fs().readlink(as(root_user), file.handle)), Status::NotSymlink);
  EXPECT_EQ(status(fs().link(as(root_user), directory.handle, root(), "again")),
            Status::IsDirectory);
}

TEST_P(VfsContract, creation_modes_treat_a_taken_name_as_asked) {
  const Node file = make_file("file");
  write(file.handle, 0, "content");
  CreateHow how;
  how.mode = CreateMode::Guarded;
  EXPECT_EQ(status(fs().create(as(root_user), root(), "file", how)), Status::Exists);
  how.mode = CreateMode::Unchecked;
  how.attributes.mode = 0600;
  Created again = good(fs().create(as(root_user), root(), "file", how));
  EXPECT_EQ(again.node.handle, file.handle);
  EXPECT_EQ(again.node.attributes.size, 7u);
  EXPECT_EQ(again.node.attributes.mode, 0644u) << "an existing file keeps its mode";
  how.attributes.size = 0;
  again = good(fs().create(as(root_user), root(), "file", how));
  EXPECT_EQ(again.node.attributes.size, 0u);
  EXPECT_EQ(attributes(file.handle).size, 0u);
}

TEST_P(VfsContract, an_exclusive_create_is_repeated_by_its_verifier_only) {
  CreateHow how;
  how.mode = CreateMode::Exclusive;
  how.verifier = {std::byte{0x81}, std::byte{2}, std::byte{3}, std::byte{4},
                  std::byte{5},    std::byte{6}, std::byte{7}, std::byte{8}};
  const Created first = good(fs().create(as(root_user), root(), "once", how));
  EXPECT_EQ(good(fs().create(as(root_user), root(), "once", how)).node.handle, first.node.handle);
  if (properties().survives_restart) {
    backend().restart();
    EXPECT_EQ(good(fs().create(as(root_user), root(), "once", how)).node.handle, first.node.handle);
  }
  how.verifier[7] = std::byte{9};
  EXPECT_EQ(status(fs().create(as(root_user), root(), "once", how)), Status::Exists);
}

TEST_P(VfsContract, symlinks_are_read_and_never_followed) {
  const Node outside = make_directory(root(), "directory");
  make_file(outside.handle, "inside");
  const Node link = good(fs().symlink(as(root_user), root(), "link", "directory", {})).node;
  EXPECT_EQ(link.attributes.type, FileType::Symlink);
  EXPECT_EQ(link.attributes.size, 9u);
  EXPECT_EQ(good(fs().readlink(as(root_user), link.handle)).target, "directory");
  EXPECT_EQ(find(root(), "link").attributes.type, FileType::Symlink);
  EXPECT_EQ(lookup_status(link.handle, "inside"), Status::NotDirectory);
  EXPECT_EQ(status(fs().set_attributes(as(root_user), link.handle, mode_of(0600), std::nullopt)),
            Status::NotSupported);
  EXPECT_EQ(status(fs().read(as(root_user), link.handle, 0, 9)), Status::Invalid);
  CreateHow how;
  how.mode = CreateMode::Unchecked;
  how.attributes.size = 0;
  EXPECT_EQ(status(fs().create(as(root_user), root(), "link", how)), Status::Exists);
}

TEST_P(VfsContract, special_files_are_made_and_never_opened) {
  const Node fifo =
      good(fs().mknod(as(root_user), root(), "fifo", {FileType::Fifo, {}}, mode_of(0622))).node;
  EXPECT_EQ(fifo.attributes.type, FileType::Fifo);
  EXPECT_EQ(fifo.attributes.mode, 0622u);
  EXPECT_EQ(status(fs().read(as(root_user), fifo.handle, 0, 1)), Status::Invalid);
  EXPECT_EQ(status(fs().write(as(root_user), fifo.handle, 0, Rope::copy_of(bytes_of("x")),
                              Stability::Unstable)),
            Status::Invalid);
  EXPECT_EQ(find(root(), "fifo").handle, fifo.handle);
  const Node socket =
      good(fs().mknod(as(root_user), root(), "socket", {FileType::Socket, {}}, {})).node;
  EXPECT_EQ(socket.attributes.type, FileType::Socket);
  EXPECT_EQ(status(fs().mknod(as(root_user), root(), "x", {FileType::Regular, {}}, {})),
            Status::BadType);
  EXPECT_EQ(status(fs().mknod(as(root_user), root(), "fifo", {FileType::Fifo, {}}, {})),
            Status::Exists);
}

TEST_P(VfsContract, devices_belong_to_root) {
  SKIP_WITHOUT_USERS();
  const Special null{FileType::CharacterDevice, {1, 3}};
  EXPECT_EQ(status(fs().mknod(as(alice), root(), "null", null, {})), Status::Perm);
  const Node device = good(fs().mknod(as(root_user), root(), "null", null, mode_of(0666))).node;
  EXPECT_EQ(device.attributes.type, FileType::CharacterDevice);
  EXPECT_EQ(device.attributes.device, (Device{1, 3}));
  EXPECT_EQ(status(fs().read(as(root_user), device.handle, 0, 1)), Status::Invalid);
}

TEST_P(VfsContract, hard_links_share_one_object_until_the_last_name_goes) {
  const Node file = make_file("one");
  write(file.handle, 0, "shared");
  const Linked linked = good(fs().link(as(root_user), file.handle, root(), "two"));
  EXPECT_EQ(linked.attributes.links, 2u);
  EXPECT_EQ(find(root(), "two").attributes.file_id, file.attributes.file_id);
  EXPECT_EQ(status(fs().link(as(root_user), file.handle, root(), "two")), Status::Exists);
  good(fs().remove(as(root_user), root(), "one"));
  EXPECT_EQ(lookup_status(root(), "one"), Status::NoEntry);
  const Node other = find(root(), "two");
  EXPECT_EQ(other.attributes.links, 1u);
  EXPECT_EQ(read(other.handle, 0, 10), "shared");
  good(fs().remove(as(root_user), root(), "two"));
  EXPECT_EQ(status(fs().attributes(as(root_user), file.handle)), Status::Stale);
  EXPECT_EQ(status(fs().read(as(root_user), file.handle, 0, 1)), Status::Stale);
}

TEST_P(VfsContract, directories_count_their_children_and_go_only_when_empty) {
  const Node directory = make_directory(root(), "d");
  EXPECT_EQ(directory.attributes.links, 2u);
  make_directory(directory.handle, "e");
  EXPECT_EQ(attributes(directory.handle).links, 3u);
  EXPECT_EQ(status(fs().rmdir(as(root_user), root(), "d")), Status::NotEmpty);
  good(fs().rmdir(as(root_user), directory.handle, "e"));
  EXPECT_EQ(attributes(directory.handle).links, 2u);
  good(fs().rmdir(as(root_user), root(), "d"));
  EXPECT_EQ(status(fs().attributes(as(root_user), directory.handle)), Status::Stale);
  EXPECT_EQ(status(fs().create(as(root_user), directory.handle, "x", {})), Status::Stale);
  EXPECT_EQ(status(fs().rmdir(as(root_user), root(), "d")), Status::NoEntry);
}

TEST_P(VfsContract, rename_replaces_what_is_compatible) {
  const Node source = make_file("source");
  write(source.handle, 0, "new");
  const Node target = make_file("target");
  const Node directory = make_directory(root(), "directory");
  const Renamed renamed = good(fs().rename(as(root_user), root(), "source", root(), "target"));
  ASSERT_TRUE(renamed.from.after && renamed.to.after);
  EXPECT_EQ(lookup_status(root(), "source"), Status::NoEntry);
  EXPECT_EQ(find(root(), "target").handle, source.handle);
  EXPECT_EQ(status(fs().attributes(as(root_user), target.handle)), Status::Stale);
  EXPECT_EQ(status(fs().rename(as(root_user), root(), "target", root(), "directory")),
            Status::Exists);
  EXPECT_EQ(status(fs().rename(as(root_user), root(), "directory", root(), "target")),
            Status::Exists);
  EXPECT_EQ(status(fs().rename(as(root_user), root(), "absent", root(), "target")),
            Status::NoEntry);
  make_file(directory.handle, "inside");
  make_directory(root(), "other");
  EXPECT_EQ(status(fs().rename(as(root_user), root(), "other", root(), "directory")),
            Status::NotEmpty);
  good(fs().rename(as(root_user), root(), "directory", root(), "other"));
  EXPECT_EQ(find(root(), "other").handle, directory.handle);
  EXPECT_EQ(find(find(root(), "other").handle, "inside").attributes.type, FileType::Regular);
}

TEST_P(VfsContract, rename_moves_between_directories_but_never_into_itself) {
  const Node a = make_directory(root(), "a");
  const Node b = make_directory(a.handle, "b");
  const Node file = make_file(b.handle, "file");
  EXPECT_EQ(status(fs().rename(as(root_user), root(), "a", b.handle, "x")), Status::Invalid);
  EXPECT_EQ(status(fs().rename(as(root_user), root(), "a", a.handle, "x")), Status::Invalid);
  good(fs().rename(as(root_user), a.handle, "b", root(), "b"));
  EXPECT_EQ(attributes(a.handle).links, 2u);
  EXPECT_EQ(find(b.handle, "..").handle, root());
  EXPECT_EQ(find(b.handle, "file").handle, file.handle);
  EXPECT_EQ(attributes(file.handle).file_id, file.attributes.file_id);
  good(fs().rename(as(root_user), root(), "a", b.handle, "a"));
  EXPECT_EQ(find(find(root(), "b").handle, "a").handle, a.handle);
}

TEST_P(VfsContract, rename_between_two_names_of_one_file_does_nothing) {
  const Node file = make_file("one");
  good(fs().link(as(root_user), file.handle, root(), "two"));
  good(fs().rename(as(root_user), root(), "one", root(), "two"));
  EXPECT_EQ(find(root(), "one").handle, file.handle);
  EXPECT_EQ(find(root(), "two").attributes.links, 2u);
  good(fs().rename(as(root_user), root(), "one", root(), "one"));
  EXPECT_EQ(find(root(), "one").handle, file.handle);
}

TEST_P(VfsContract, changes_of_a_directory_are_reported_with_before_and_after) {
  const Attributes before = attributes(root());
  const Created made = good(fs().mkdir(as(root_user), root(), "d", {}));
  ASSERT_TRUE(made.directory.after);
  EXPECT_EQ(made.directory.after->file_id, before.file_id);
  EXPECT_EQ(made.directory.after->links, before.links + 1);
  EXPECT_GE(made.directory.after->changed, before.changed);
  if (made.directory.before) {
    EXPECT_EQ(made.directory.before->changed, before.changed);
    EXPECT_EQ(made.directory.before->modified, before.modified);
    EXPECT_EQ(made.directory.before->size, before.size);
  }
}

TEST_P(VfsContract, handles_survive_a_restart_and_follow_renames) {
  const Node directory = make_directory(root(), "d");
  const Node file = make_file(directory.handle, "file");
  write(file.handle, 0, "kept");
  const Node gone = make_file("gone");
  const Handle old_root = root();
  good(fs().rename(as(root_user), root(), "d", root(), "e"));
  good(fs().remove(as(root_user), root(), "gone"));
  if (!properties().survives_restart) GTEST_SKIP() << "nothing survives in this store";
  backend().restart();
  EXPECT_EQ(root(), old_root);
  EXPECT_EQ(attributes(file.handle).file_id, file.attributes.file_id);
  EXPECT_EQ(read(file.handle, 0, 10), "kept");
  EXPECT_EQ(find(directory.handle, "file").handle, file.handle);
  EXPECT_EQ(find(root(), "e").handle, directory.handle);
  EXPECT_EQ(find(directory.handle, "..").handle, root());
  EXPECT_EQ(status(fs().attributes(as(root_user), gone.handle)), Status::Stale);
}

}  // namespace stag::vfs::testing
