// Contract of every FileSystem, part 6: what every operation refuses, and that a refusal leaves no
// trace.
#pragma once

#include <algorithm>
#include <functional>

#include "testing/vfs/fixture.h"

namespace stag::vfs::testing {

class VfsRefusalContract : public VfsContract {
 protected:
  // An operation with one of its arguments open.
  template <class Argument>
  struct With {
    std::string_view what;
    std::function<std::optional<Status>(Argument)> answer;
  };
  using WithHandle = With<const Handle&>;
  using WithName = With<std::string_view>;

  // Every operation, by each handle that it takes.
  std::vector<WithHandle> by_handle() {
    std::vector<WithHandle> all = reading_by_handle();
    for (WithHandle& changing : changing_by_handle()) all.push_back(std::move(changing));
    return all;
  }
  std::vector<WithHandle> reading_by_handle() {
    const CallerContext who = as(root_user);
    return {
        {"attributes", [=, this](auto& h) { return status(fs().attributes(who, h)); }},
        {"lookup", [=, this](auto& h) { return status(fs().lookup(who, h, "x")); }},
        {"access", [=, this](auto& h) { return status(fs().access(who, h, access::kAll)); }},
        {"readlink", [=, this](auto& h) { return status(fs().readlink(who, h)); }},
        {"read", [=, this](auto& h) { return status(fs().read(who, h, 0, 1)); }},
        {"list",
         [=, this](auto& h) {
           Names names;
           return status(fs().list(who, h, {}, names));
         }},
    };
  }
  std::vector<WithHandle> changing_by_handle() {
    const CallerContext who = as(root_user);
    const Rope data = Rope::copy_of(bytes_of("x"));
    return {
        {"set_attributes",
         [=, this](auto& h) {
           return status(fs().set_attributes(who, h, mode_of(0600), std::nullopt));
         }},
        {"write",
         [=, this](auto& h) { return status(fs().write(who, h, 0, data, Stability::FileSync)); }},
        {"commit", [=, this](auto& h) { return status(fs().commit(who, h, 0, 0)); }},
        {"create", [=, this](auto& h) { return status(fs().create(who, h, "x", {})); }},
        {"mkdir", [=, this](auto& h) { return status(fs().mkdir(who, h, "x", {})); }},
        {"symlink", [=, this](auto& h) { return status(fs().symlink(who, h, "x", "t", {})); }},
        {"mknod", [=, this](auto& h) { return status(fs().mknod(who, h, "x", {}, {})); }},
        {"link", [=, this](auto& h) { return status(fs().link(who, h, root(), "x")); }},
        {"link into",
         [=, this](auto& h) {
           return status(fs().link(who, find(root(), "file").handle, h, "x"));
         }},
        {"remove", [=, this](auto& h) { return status(fs().remove(who, h, "x")); }},
        {"rmdir", [=, this](auto& h) { return status(fs().rmdir(who, h, "x")); }},
        {"rename from",
         [=, this](auto& h) { return status(fs().rename(who, h, "x", root(), "y")); }},
        {"rename to",
         [=, this](auto& h) { return status(fs().rename(who, root(), "file", h, "y")); }},
    };
  }
  // Those that make a name, with their way to treat one that is taken.
  std::vector<WithName> making() {
    const CallerContext who = as(root_user);
    const auto create = [=, this](CreateMode mode) {
      return [=, this](std::string_view name) {
        CreateHow how;
        how.mode = mode;
        return status(fs().create(who, root(), name, how));
      };
    };
    return {
        {"create guarded", create(CreateMode::Guarded)},
        {"create unchecked", create(CreateMode::Unchecked)},
        {"create exclusive", create(CreateMode::Exclusive)},
        {"mkdir", [=, this](auto name) { return status(fs().mkdir(who, root(), name, {})); }},
        {"symlink",
         [=, this](auto name) { return status(fs().symlink(who, root(), name, "t", {})); }},
        {"mknod", [=, this](auto name) { return status(fs().mknod(who, root(), name, {}, {})); }},
        {"link",
         [=, this](auto name) {
           return status(fs().link(who, find(root(), "file").handle, root(), name));
         }},
    };
  }
  std::vector<WithName> taking_away() {
    const CallerContext who = as(root_user);
    return {
        {"remove", [=, this](auto name) { return status(fs().remove(who, root(), name)); }},
        {"rmdir", [=, this](auto name) { return status(fs().rmdir(who, root(), name)); }},
        {"rename from",
         [=, this](auto name) { return status(fs().rename(who, root(), name, root(), "y")); }},
        {"rename to",
         [=, this](auto name) { return status(fs().rename(who, root(), "file", root(), name)); }},
    };
  }

  // All that anybody can see of the tree, two levels deep; access times apart, which reading moves.
  std::vector<std::string> picture() {
    std::vector<std::string> all;
    add_to_picture("", root(), all);
    std::sort(all.begin(), all.end());
    return all;
  }
  // `answer` runs an operation that is to fail; the tree is as it was then.
  template <class HeaderErrorReply>
  void expect_refusal(std::string_view what, Status expected, HeaderErrorReply answer) {
    const std::vector<std::string> before = picture();
    EXPECT_EQ(answer(), expected) << what;
    EXPECT_EQ(picture(), before) << what;
  }

 private:
  void add_to_picture(const std::string& path, const Handle& directory,
                      std::vector<std::string>& all) {
    for (const std::string& name : list(directory)) {
      if (name == "..") continue;
      const Node node = find(directory, name);
      all.push_back(path + "/" + name + description(node));
      const bool below = name != "." && node.attributes.type == FileType::Directory;
      if (below) add_to_picture(path + "/" + name, node.handle, all);
    }
  }
  std::string description(const Node& node) {
    const Attributes& seen = node.attributes;
    std::string text;
    for (const std::uint64_t number :
         {std::uint64_t{static_cast<std::uint64_t>(seen.type)}, std::uint64_t{seen.mode},
          std::uint64_t{seen.links}, std::uint64_t{seen.uid}, std::uint64_t{seen.gid}, seen.size,
          seen.file_id, static_cast<std::uint64_t>(seen.modified.seconds),
          std::uint64_t{seen.modified.nanoseconds},
          static_cast<std::uint64_t>(seen.changed.seconds), std::uint64_t{seen.changed.nanoseconds},
          seen.change})
      text += " " + std::to_string(number);
    if (seen.type == FileType::Regular) text += " " + read(node.handle, 0, 100);
    return text;
  }
};

TEST_P(VfsRefusalContract, no_operation_takes_bytes_that_are_no_handle) {
  make_file("file");
  for (const WithHandle& operation : by_handle()) {
    EXPECT_EQ(operation.answer(Handle()), Status::BadHandle) << operation.what;
    EXPECT_EQ(operation.answer(*Handle::from(bytes_of("never a handle"))), Status::BadHandle)
        << operation.what;
  }
}

TEST_P(VfsRefusalContract, every_operation_on_what_is_gone_is_stale) {
  make_file("file");
  const Handle gone_file = make_file("gone").handle;
  const Handle gone_directory = make_directory(root(), "gone too").handle;
  good(fs().remove(as(root_user), root(), "gone"));
  good(fs().rmdir(as(root_user), root(), "gone too"));
  for (const WithHandle& operation : by_handle()) {
    EXPECT_EQ(operation.answer(gone_file), Status::Stale) << operation.what;
    EXPECT_EQ(operation.answer(gone_directory), Status::Stale) << operation.what;
  }
  EXPECT_EQ(list(root()).size(), 3u);
}

TEST_P(VfsRefusalContract, no_operation_takes_a_name_that_is_none) {
  make_file("file");
  const std::string too_long(fs().limits().max_name + 1, 'x');
  std::vector<WithName> all = making();
  for (WithName& operation : taking_away()) all.push_back(std::move(operation));
  all.push_back({"lookup", [this](auto name) { return lookup_status(root(), name); }});
  const std::vector<std::string> before = picture();
  for (const WithName& operation : all) {
    for (const std::string_view bad :
         {std::string_view(), std::string_view("/"), std::string_view("file/"),
          std::string_view("a/b"), std::string_view("file\0", 5), std::string_view("\0", 1)})
      EXPECT_EQ(operation.answer(bad), Status::Access) << operation.what << " of " << bad;
    EXPECT_EQ(operation.answer(too_long), Status::NameTooLong) << operation.what;
  }
  EXPECT_EQ(picture(), before);
}

TEST_P(VfsRefusalContract, dot_and_dot_dot_are_there_already_and_never_go) {
  make_file("file");
  const std::vector<std::string> before = picture();
  for (const std::string_view dots : {".", ".."}) {
    for (const WithName& operation : making())
      EXPECT_EQ(operation.answer(dots), Status::Exists) << operation.what << dots;
    for (const WithName& operation : taking_away())
      EXPECT_EQ(operation.answer(dots), Status::Invalid) << operation.what << dots;
  }
  EXPECT_EQ(picture(), before);
}

TEST_P(VfsRefusalContract, a_name_that_is_taken_stays_what_it_is) {
  make_file("file");
  make_directory(make_directory(root(), "directory").handle, "inner");
  good(fs().symlink(as(root_user), root(), "link", "file", {}));
  const std::vector<std::string> before = picture();
  for (const std::string_view taken : {"file", "directory", "link"})
    for (const WithName& operation : making()) {
      if (operation.what == "create unchecked") continue;
      EXPECT_EQ(operation.answer(taken), Status::Exists) << operation.what << " of " << taken;
    }
  EXPECT_EQ(picture(), before);
}

TEST_P(VfsRefusalContract, an_entry_that_cannot_go_or_move_stays) {
  const Node file = make_file("file");
  const Node directory = make_directory(root(), "directory");
  const Node inner = make_directory(directory.handle, "inner");
  const CallerContext who = as(root_user);
  const auto move = [&](std::string_view from, const Handle& into, std::string_view to) {
    return status(fs().rename(who, root(), from, into, to));
  };
  expect_refusal("absent", Status::NoEntry,
                 [&] { return status(fs().remove(who, root(), "absent")); });
  expect_refusal("absent", Status::NoEntry,
                 [&] { return status(fs().rmdir(who, root(), "absent")); });
  expect_refusal("absent", Status::NoEntry, [&] { return move("absent", root(), "file"); });
  expect_refusal("full", Status::NotEmpty,
                 [&] { return status(fs().rmdir(who, root(), "directory")); });
  expect_refusal("file over directory", Status::Exists,
                 [&] { return move("file", root(), "directory"); });
  expect_refusal("directory over file", Status::Exists,
                 [&] { return move("directory", root(), "file"); });
  expect_refusal("into itself", Status::Invalid,
                 [&] { return move("directory", directory.handle, "x"); });
  expect_refusal("below itself", Status::Invalid,
                 [&] { return move("directory", inner.handle, "x"); });
  expect_refusal("into a file", Status::NotDirectory,
                 [&] { return move("directory", file.handle, "x"); });
}

TEST_P(VfsRefusalContract, a_change_of_which_a_part_is_refused_is_refused_whole) {
  const Node file = make_file("file", 0644);
  write(file.handle, 0, "content");
  const Node directory = make_directory(root(), "directory");
  SetAttributes all = mode_of(0600);
  all.size = 3;
  all.accessed = {SetTime::How::To, {1000, 0}};
  all.modified = {SetTime::How::To, {1000, 0}};
  const CallerContext who = as(root_user);
  const auto set = [&](const Handle& object, const SetAttributes& changes,
                       std::optional<Time> guard = std::nullopt) {
    return [=, this, &object] { return status(fs().set_attributes(who, object, changes, guard)); };
  };
  expect_refusal("guard", Status::NotSync, set(file.handle, all, Time{1, 0}));
  expect_refusal("directory", Status::IsDirectory, set(directory.handle, all));
  SetAttributes odd = all;
  odd.size = ~std::uint64_t{0};
  expect_refusal("size", Status::FileTooBig, set(file.handle, odd));
  odd = all;
  odd.modified.time.nanoseconds = 1'000'000'000;
  expect_refusal("nanoseconds", Status::Invalid, set(file.handle, odd));
  odd = all;
  odd.uid = ~std::uint32_t{0};
  expect_refusal("nobody", Status::Invalid, set(file.handle, odd));
}

TEST_P(VfsRefusalContract, what_a_stranger_may_not_do_leaves_no_trace) {
  SKIP_WITHOUT_USERS();
  const Node directory = make_directory(root(), "d", 0755);
  const Node file = make_file(alice, root(), "file", 0644);
  make_file(directory.handle, "inside");
  const CallerContext who = as(bob);
  const Handle& there = directory.handle;
  SetAttributes half = mode_of(0600);
  half.size = 0;
  const Rope data = Rope::copy_of(bytes_of("x"));
  CreateHow cut;
  cut.mode = CreateMode::Unchecked;
  cut.attributes.size = 0;
  CreateHow once;
  once.mode = CreateMode::Exclusive;
  const auto no = Status::Access;
  expect_refusal("set", Status::Perm,
                 [&] { return status(fs().set_attributes(who, file.handle, half, std::nullopt)); });
  expect_refusal("write", no, [&] {
    return status(fs().write(who, file.handle, 0, data, Stability::FileSync));
  });
  expect_refusal("reopen", no, [&] { return status(fs().create(who, root(), "file", cut)); });
  expect_refusal("create", no, [&] { return status(fs().create(who, there, "x", {})); });
  expect_refusal("create exclusive", no,
                 [&] { return status(fs().create(who, there, "x", once)); });
  expect_refusal("mkdir", no, [&] { return status(fs().mkdir(who, there, "x", {})); });
  expect_refusal("symlink", no, [&] { return status(fs().symlink(who, there, "x", "t", {})); });
  expect_refusal("mknod", no, [&] { return status(fs().mknod(who, there, "x", {}, {})); });
  expect_refusal("remove", no, [&] { return status(fs().remove(who, there, "inside")); });
  expect_refusal("rename", no,
                 [&] { return status(fs().rename(who, there, "inside", root(), "x")); });
  expect_refusal("rmdir", Status::Perm, [&] { return status(fs().rmdir(who, root(), "d")); });
}

TEST_P(VfsRefusalContract, what_cannot_be_made_is_not) {
  make_directory(root(), "d");
  const CallerContext who = as(root_user);
  const auto symlink = [&](std::string_view target) {
    return [=, this] { return status(fs().symlink(who, root(), "x", target, {})); };
  };
  const std::string too_long(5000, 't');
  expect_refusal("no target", Status::Invalid, symlink(""));
  expect_refusal("NUL", Status::Invalid, symlink(std::string_view("a\0b", 3)));
  expect_refusal("long target", Status::NameTooLong, symlink(too_long));
  for (const FileType type : {FileType::Regular, FileType::Directory, FileType::Symlink})
    expect_refusal("no special", Status::BadType, [&] {
      return status(fs().mknod(who, root(), "x", {type, {}}, {}));
    });
  CreateHow how;
  how.attributes.size = ~std::uint64_t{0};
  expect_refusal("size", Status::FileTooBig,
                 [&] { return status(fs().create(who, root(), "x", how)); });
  how = {};
  how.attributes.modified = {SetTime::How::To, {0, 2'000'000'000}};
  expect_refusal("time", Status::Invalid,
                 [&] { return status(fs().create(who, root(), "x", how)); });
  expect_refusal("time", Status::Invalid,
                 [&] { return status(fs().mkdir(who, root(), "x", how.attributes)); });
  const Rope byte = Rope::copy_of(bytes_of("x"));
  const Node file = make_file("file");
  expect_refusal("offset", Status::FileTooBig, [&] {
    return status(fs().write(who, file.handle, std::uint64_t{1} << 63, byte, Stability::FileSync));
  });
}

}  // namespace stag::vfs::testing
