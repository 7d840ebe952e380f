// Contract of every FileSystem, part 7: what is reported of a change, how long handles live, and
// operations that are under way together.
#pragma once

#include <set>

#include "testing/vfs/fixture.h"

namespace stag::vfs::testing {

class VfsChangeContract : public VfsContract {
 protected:
  // One change, by an operation that gives a Change of `object`.
  template <class Changed>
  void expect_reported(std::string_view what, const Handle& object, Changed changed) {
    const Attributes before = attributes(object);
    const Change change = changed();
    ASSERT_TRUE(change.after) << what;
    const Attributes after = attributes(object);
    if (change.before) {
      EXPECT_EQ(change.before->size, before.size) << what;
      EXPECT_EQ(change.before->modified, before.modified) << what;
      EXPECT_EQ(change.before->changed, before.changed) << what;
      EXPECT_EQ(change.before->change, before.change) << what;
    }
    EXPECT_EQ(change.after->file_id, before.file_id) << what;
    EXPECT_EQ(change.after->size, after.size) << what;
    EXPECT_EQ(change.after->mode, after.mode) << what;
    EXPECT_EQ(change.after->links, after.links) << what;
    EXPECT_EQ(change.after->modified, after.modified) << what;
    EXPECT_EQ(change.after->changed, after.changed) << what;
    EXPECT_EQ(change.after->change, after.change) << what;
    EXPECT_GE(after.changed, before.changed) << what;
    EXPECT_EQ(after.file_system_id, before.file_system_id) << what;
    EXPECT_GT(after.change, before.change) << what;
  }
  Rope text(std::string_view bytes) { return Rope::copy_of(bytes_of(bytes)); }
};

TEST_P(VfsChangeContract, every_change_of_a_file_is_reported_as_it_is_seen) {
  const Node file = make_file("file");
  const Handle& object = file.handle;
  const CallerContext who = as(root_user);
  expect_reported("write", object, [&] {
    return good(fs().write(who, object, 0, text("12345"), Stability::Unstable)).file;
  });
  expect_reported("overwrite", object, [&] {
    return good(fs().write(who, object, 1, text("x"), Stability::FileSync)).file;
  });
  expect_reported("mode", object, [&] {
    return good(fs().set_attributes(who, object, mode_of(0600), std::nullopt));
  });
  SetAttributes size;
  size.size = 2;
  expect_reported("size", object,
                  [&] { return good(fs().set_attributes(who, object, size, std::nullopt)); });
  SetAttributes times;
  times.modified = {SetTime::How::To, {1'000'000'000, 0}};
  expect_reported("times", object,
                  [&] { return good(fs().set_attributes(who, object, times, std::nullopt)); });
  EXPECT_EQ(read(object, 0, 10), "1x");
}

TEST_P(VfsChangeContract, every_change_of_a_directory_is_reported_as_it_is_seen) {
  const Handle place = make_directory(root(), "d").handle;
  const Handle file = make_file("file").handle;
  const CallerContext who = as(root_user);
  expect_reported("create", place,
                  [&] { return good(fs().create(who, place, "a", {})).directory; });
  expect_reported("mkdir", place, [&] { return good(fs().mkdir(who, place, "b", {})).directory; });
  expect_reported("symlink", place,
                  [&] { return good(fs().symlink(who, place, "c", "t", {})).directory; });
  expect_reported("mknod", place,
                  [&] { return good(fs().mknod(who, place, "e", {}, {})).directory; });
  expect_reported("link", place, [&] { return good(fs().link(who, file, place, "f")).directory; });
  expect_reported("rename in it", place,
                  [&] { return good(fs().rename(who, place, "a", place, "g")).from; });
  expect_reported("rename in it", place,
                  [&] { return good(fs().rename(who, place, "g", place, "h")).to; });
  expect_reported("rename over", place,
                  [&] { return good(fs().rename(who, place, "h", place, "c")).to; });
  expect_reported("rename away", place,
                  [&] { return good(fs().rename(who, place, "c", root(), "i")).from; });
  expect_reported("rename into", place,
                  [&] { return good(fs().rename(who, root(), "i", place, "j")).to; });
  expect_reported("remove", place, [&] { return good(fs().remove(who, place, "j")); });
  expect_reported("rmdir", place, [&] { return good(fs().rmdir(who, place, "b")); });
  EXPECT_EQ(list(place).size(), 4u);
}

TEST_P(VfsChangeContract, every_change_of_a_file_by_its_names_is_counted) {
  const Handle file = make_file("file").handle;
  const CallerContext who = as(root_user);
  std::uint64_t last = attributes(file).change;
  const auto expect_counted = [&](const char* what, std::uint64_t after) {
    EXPECT_GT(after, last) << what;
    EXPECT_EQ(attributes(file).change, after) << what;
    last = after;
  };
  expect_counted("link", good(fs().link(who, file, root(), "again")).attributes.change);
  good(fs().remove(who, root(), "again"));
  expect_counted("remove", attributes(file).change);
}

TEST_P(VfsChangeContract, the_count_of_changes_goes_on_after_a_restart) {
  if (!properties().survives_restart) GTEST_SKIP() << "nothing of this store is there after one";
  const Handle file = make_file("file").handle;
  std::uint64_t last = attributes(file).change;
  for (int i = 0; i < 5; ++i) {
    write(file, 0, "x");
    write(file, 0, "y");
    EXPECT_GT(attributes(file).change, last);
    last = attributes(file).change;
    backend().restart();
    EXPECT_GE(attributes(file).change, last);
    last = attributes(file).change;
  }
}

TEST_P(VfsChangeContract, what_only_looks_changes_nothing) {
  const Node file = make_file("file");
  write(file.handle, 0, "text");
  const std::uint64_t of_file = attributes(file.handle).change;
  const std::uint64_t of_root = attributes(root()).change;
  read(file.handle, 0, 4);
  list(root());
  find(root(), "file");
  good(fs().access(as(root_user), file.handle, access::kAll));
  good(fs().commit(as(root_user), file.handle, 0, 0));
  good(fs().set_attributes(as(root_user), file.handle, {}, std::nullopt));
  EXPECT_EQ(attributes(file.handle).change, of_file);
  EXPECT_EQ(attributes(root()).change, of_root);
}

TEST_P(VfsChangeContract, the_time_of_its_making_stays_whatever_becomes_of_an_object) {
  if (!properties().knows_creation) {
    EXPECT_FALSE(attributes(root()).created.has_value());
    return;
  }
  const Node file = make_file("file");
  ASSERT_TRUE(file.attributes.created.has_value());
  EXPECT_GE(*file.attributes.created, *attributes(root()).created);
  write(file.handle, 0, "x");
  SetAttributes changes = mode_of(0600);
  changes.modified = {SetTime::How::To, {1000, 0}};
  good(fs().set_attributes(as(root_user), file.handle, changes, std::nullopt));
  good(fs().rename(as(root_user), root(), "file", root(), "renamed"));
  EXPECT_EQ(find(root(), "renamed").attributes.created, file.attributes.created);
  EXPECT_EQ(attributes(file.handle).created, file.attributes.created);
}

TEST_P(VfsChangeContract, a_symlink_has_attributes_of_its_own) {
  SKIP_WITHOUT_USERS();
  const Node file = make_file("file", 0644);
  const Handle link = good(fs().symlink(as(root_user), root(), "link", "file", {})).node.handle;
  SetAttributes changes;
  changes.uid = 7;
  changes.gid = 8;
  changes.modified = {SetTime::How::To, {1000, 0}};
  good(fs().set_attributes(as(root_user), link, changes, std::nullopt));
  EXPECT_EQ(attributes(link).uid, 7u);
  EXPECT_EQ(attributes(link).gid, 8u);
  EXPECT_EQ(attributes(link).modified, (Time{1000, 0}));
  EXPECT_EQ(attributes(file.handle).uid, 0u);
  EXPECT_EQ(attributes(file.handle).modified, file.attributes.modified);
  const Linked again = good(fs().link(as(root_user), link, root(), "again"));
  EXPECT_EQ(again.attributes.type, FileType::Symlink) << "the link, not what it leads to";
  good(fs().remove(as(root_user), root(), "link"));
  EXPECT_EQ(find(root(), "again").handle, link);
  EXPECT_EQ(attributes(file.handle).links, 1u);
}

TEST_P(VfsChangeContract, the_text_of_a_symlink_is_kept_byte_for_byte) {
  const std::string odd("../\xff\xfe\n/./x//\x01", 13);
  for (const std::string& target : {odd, std::string("/"), std::string(4095, 't')}) {
    const Node link = good(fs().symlink(as(root_user), root(), "link", target, {})).node;
    EXPECT_EQ(link.attributes.size, target.size());
    EXPECT_EQ(good(fs().readlink(as(root_user), link.handle)).target, target);
    good(fs().remove(as(root_user), root(), "link"));
  }
}

TEST_P(VfsChangeContract, a_handle_is_the_objects_whatever_its_names) {
  const Handle directory = make_directory(root(), "d").handle;
  const Node file = make_file("one");
  EXPECT_LE(file.handle.size(), Handle::kMaxSize);
  good(fs().link(as(root_user), file.handle, directory, "two"));
  EXPECT_EQ(find(directory, "two").handle, file.handle);
  good(fs().rename(as(root_user), root(), "one", directory, "three"));
  good(fs().remove(as(root_user), directory, "two"));
  EXPECT_EQ(find(directory, "three").handle, file.handle);
  EXPECT_EQ(attributes(file.handle).links, 1u);
  good(fs().rename(as(root_user), root(), "d", root(), "e"));
  EXPECT_EQ(find(root(), "e").handle, directory);
  EXPECT_EQ(attributes(file.handle).file_id, file.attributes.file_id);
}

TEST_P(VfsChangeContract, a_name_that_is_made_again_leads_to_another_object) {
  std::vector<Handle> gone;
  for (int i = 0; i < 12; ++i) {
    const CallerContext who = as(root_user);
    if (i % 3 == 0) gone.push_back(make_file("name").handle);
    if (i % 3 == 1) gone.push_back(make_directory(root(), "name").handle);
    if (i % 3 == 2) gone.push_back(good(fs().symlink(who, root(), "name", "t", {})).node.handle);
    if (i % 3 == 1)
      good(fs().rmdir(who, root(), "name"));
    else
      good(fs().remove(who, root(), "name"));
  }
  const Handle last = make_file("name").handle;
  for (const Handle& handle : gone) {
    EXPECT_FALSE(handle == last);
    EXPECT_EQ(status(fs().attributes(as(root_user), handle)), Status::Stale);
  }
  if (!properties().survives_restart) return;
  backend().restart();
  for (const Handle& handle : gone)
    EXPECT_EQ(status(fs().attributes(as(root_user), handle)), Status::Stale);
  EXPECT_EQ(find(root(), "name").handle, last);
}

TEST_P(VfsChangeContract, an_exclusive_create_is_no_repeat_once_the_file_was_used) {
  CreateHow how;
  how.mode = CreateMode::Exclusive;
  how.verifier = {std::byte{0xff}, std::byte{0xff}, std::byte{0xff}, std::byte{0xff},
                  std::byte{0xff}, std::byte{0xff}, std::byte{0xff}, std::byte{0xff}};
  const auto again = [&](std::string_view name) {
    return status(fs().create(as(root_user), root(), name, how));
  };
  for (const std::string_view name : {"written", "set", "moved"})
    ASSERT_EQ(again(name), std::nullopt) << name;
  write(find(root(), "written").handle, 0, "x");
  EXPECT_EQ(again("written"), Status::Exists);
  SetAttributes now;
  now.modified.how = SetTime::How::Now;
  good(fs().set_attributes(as(root_user), find(root(), "set").handle, now, std::nullopt));
  EXPECT_EQ(again("set"), Status::Exists);
  good(fs().rename(as(root_user), root(), "moved", root(), "elsewhere"));
  EXPECT_EQ(again("moved"), std::nullopt) << "the name is free";
  make_directory(root(), "directory");
  EXPECT_EQ(again("directory"), Status::Exists);
}

TEST_P(VfsChangeContract, the_repeat_of_an_exclusive_create_keeps_what_was_set_besides_times) {
  CreateHow how;
  how.mode = CreateMode::Exclusive;
  how.verifier.fill(std::byte{3});
  const Handle file = good(fs().create(as(root_user), root(), "file", how)).node.handle;
  good(fs().set_attributes(as(root_user), file, mode_of(0640), std::nullopt));
  const Node again = good(fs().create(as(root_user), root(), "file", how)).node;
  EXPECT_EQ(again.handle, file);
  EXPECT_EQ(again.attributes.mode, 0640u);
}

TEST_P(VfsChangeContract, an_exclusive_create_sets_attributes_once) {
  CreateHow how;
  how.mode = CreateMode::Exclusive;
  how.verifier.fill(std::byte{9});
  how.attributes.mode = 0604;
  const Node made = good(fs().create(as(root_user), root(), "file", how)).node;
  EXPECT_EQ(made.attributes.mode, 0604u);
  good(fs().set_attributes(as(root_user), made.handle, mode_of(0640), std::nullopt));
  const Node again = good(fs().create(as(root_user), root(), "file", how)).node;
  EXPECT_EQ(again.handle, made.handle);
  EXPECT_EQ(again.attributes.mode, 0640u) << "the repeat sets nothing";
  how.attributes.size = 0;
  EXPECT_EQ(status(fs().create(as(root_user), root(), "sized", how)), Status::Invalid);
  how.attributes.size.reset();
  how.attributes.modified.how = SetTime::How::Now;
  EXPECT_EQ(status(fs().create(as(root_user), root(), "timed", how)), Status::Invalid);
  EXPECT_EQ(list(root()).size(), 3u);
}

// Each is as if it were alone, in whatever order they end.
TEST_P(VfsChangeContract, operations_under_way_together_have_each_their_own_answer) {
  const Handle file = make_file("file").handle;
  write(file, 0, "0123456789");
  const Handle directory = make_directory(root(), "d").handle;
  const CallerContext who = as(root_user);
  std::vector<std::shared_ptr<std::optional<Outcome<ReadResult>>>> reads;
  std::vector<std::shared_ptr<std::optional<Outcome<Created>>>> made;
  std::vector<std::string> names;
  for (int i = 0; i < 10; ++i) names.push_back("n" + std::to_string(i));
  for (std::uint32_t i = 0; i < 10; ++i) {
    reads.push_back(start(fs().read(who, file, i, 1)));
    made.push_back(start_create(directory, names[i]));
  }
  Names listed;
  const ListFrom all;
  const auto listing = start(fs().list(who, directory, all, listed));
  loop().drain();
  for (std::size_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(reads[i]->has_value() && (*reads[i])->ok());
    EXPECT_EQ(text_of((**reads[i])->data.flatten().bytes()), std::to_string(i));
    ASSERT_TRUE(made[i]->has_value() && (*made[i])->ok());
    EXPECT_EQ((**made[i])->node.handle, find(directory, names[i]).handle);
  }
  ASSERT_TRUE(listing->has_value() && (*listing)->ok());
  EXPECT_EQ(list(directory).size(), 12u);
}

TEST_P(VfsChangeContract, has_one_alone_make_a_name_that_several_make_together) {
  std::vector<std::shared_ptr<std::optional<Outcome<Created>>>> made;
  const Handle top = root();
  for (int i = 0; i < 5; ++i) made.push_back(start_create(top, "prize"));
  loop().drain();
  int winners = 0;
  for (const auto& outcome : made) {
    ASSERT_TRUE(outcome->has_value());
    if ((*outcome)->ok())
      ++winners;
    else
      EXPECT_EQ((*outcome)->error(), Status::Exists);
  }
  EXPECT_EQ(winners, 1);
}

TEST_P(VfsChangeContract, a_store_that_answers_at_once_has_done_it_when_the_call_returns) {
  if (!properties().answers_at_once) GTEST_SKIP() << "this store may answer later";
  const CallerContext who = as(root_user);
  {
    const auto operation = fs().mkdir(who, root(), "d", {});
    EXPECT_TRUE(operation.ready());
  }
  EXPECT_EQ(lookup_status(root(), "d"), std::nullopt) << "although nobody awaited it";
}

}  // namespace stag::vfs::testing
