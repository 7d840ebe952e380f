// What the Copier does about a source that changes while it is copied.
#include "cli/copy/copier.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "cli/copy/fake_endpoint_test.h"

namespace stag::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using CopierTest = LocalCopyTest;

const FakeFiles kOneFile{{"top", {}}, {"top/f", "content"}};
const CopyOptions kInPlace{.recursive = true, .directories = true, .in_place = true};

TEST_F(CopierTest, empties_no_file_that_is_its_source_by_another_way_and_grows_meanwhile) {
  write("dst/f", "content");
  FakeEndpoint from(kOneFile);
  // A server that has the local file, and says it to version 2: without the nanoseconds.
  from.show([this, grown = false](CopyObject& object) mutable {
    struct stat known {};
    if (object.kind != Kind::File || ::stat(at("dst/f").c_str(), &known) != 0) return;
    object.file_id = known.st_ino;
    object.fsid = 1;
    object.size = static_cast<std::uint64_t>(known.st_size);
    object.modified = time_of(known.st_mtim);
    object.modified.nanoseconds -= object.modified.nanoseconds % 1000;
    object.changed = time_of(known.st_ctim);
    object.changed.nanoseconds -= object.changed.nanoseconds % 1000;
    if (!std::exchange(grown, true)) std::ofstream(at("dst/f"), std::ios::app) << " and more";
  });
  EXPECT_FALSE(copy_to(from, kInPlace, ""));
  EXPECT_THAT(complaints_, ElementsAre(HasSubstr("dst/f' is the same file")));
  EXPECT_EQ(read("dst/f"), "content and more");
}

TEST_F(CopierTest, fails_where_a_source_is_empty_once_the_file_in_its_place_has_been_emptied) {
  write("dst/f", "old content");
  FakeEndpoint from(kOneFile);
  from.tell([&from](const std::string& what) {
    if (what == "feed top/f") from.files()["top/f"] = "";
  });
  EXPECT_FALSE(copy_to(from, kInPlace, ""));
  EXPECT_THAT(complaints_, ElementsAre(HasSubstr("it was written in place and is incomplete now"),
                                       HasSubstr("it has become empty meanwhile")));
}

TEST_F(CopierTest, removes_nothing_of_a_directory_that_was_moved_away_since_it_was_listed) {
  for (const bool replaced : {false, true}) {
    write("src/new", "");
    complaints_.clear();
    progress_.removed = 0;
    FakeEndpoint to({{"top", {}}, {"top/a", ""}, {"top/b", {}}, {"top/b/f", ""}});
    to.tell([&](const std::string& what) {
      if (what != "remove top/a") return;
      to.move("top/b", "safe");
      if (!replaced) return;
      to.files()["top/b"] = std::nullopt;
      to.show([](CopyObject& object) { object.file_id += object.path == "top/b" ? 1 : 0; });
    });
    EXPECT_EQ(copy_from(to, mirror()), !replaced);
    EXPECT_TRUE(to.files().contains("safe/f"));
    EXPECT_EQ(to.files().contains("top/b"), replaced);
    EXPECT_EQ(progress_.removed, 1U);
    EXPECT_EQ(complaints_.size(), replaced ? 1U : 0U);
    for (const std::string& complaint : complaints_)
      EXPECT_THAT(complaint, HasSubstr("'fake:top/b' has changed meanwhile"));
  }
}

// Of a server that has neither lists nor attributes.
Outcome<Ok> refuse(const Extras& extras) {
  if (extras.empty()) return Ok{};
  return Failure{nfs::client::Error::of_status({"set", {}}, nfs::client::Status::NotSupported)};
}

TEST_F(CopierTest, fails_only_for_the_kind_that_is_required_where_a_side_takes_none) {
  Extras extras;
  extras.xattrs.emplace_back("colour", "red");
  extras.acls = nfs::client::Acls{.access = {{nfs::client::AclEntry::kUser, 1, 4}},
                                  .defaults = {{nfs::client::AclEntry::kUser, 1, 4}}};
  for (const bool required : {false, true}) {
    complaints_.clear();
    FakeEndpoint from(kOneFile);
    from.have(extras);
    FakeEndpoint to(FakeFiles{{"top", {}}});
    to.adopt_by(refuse);
    CopyOptions options = mirror();
    options.preserve.extras = {.xattrs = true, .acls = true};
    options.preserve.required.xattrs = required;
    EXPECT_EQ(run(copied(from, to, options, "top", "", "top")), !required);
    // The attributes go first, and what fails for them asks for nothing else.
    if (required)
      EXPECT_THAT(complaints_, ElementsAre(HasSubstr("fake:top/f: cannot set")));
    else
      EXPECT_THAT(complaints_, ElementsAre(HasSubstr("extended attributes are not copied"),
                                           HasSubstr("access control lists are not copied")));
    complaints_.clear();
    options.preserve.required = {.xattrs = false, .acls = required};
    to.files().erase("top/f");
    EXPECT_EQ(run(copied(from, to, options, "top", "", "top")), !required);
    EXPECT_EQ(complaints_.size(), 2u);
  }
}

TEST_F(CopierTest, copies_to_a_clone_of_the_server_whose_files_have_the_same_handles) {
  for (const bool one_server : {false, true}) {
    FakeEndpoint from({{"top", {}}, {"top/f", "changed"}}), to({{"top", {}}, {"top/f", "old"}});
    const auto number = [](std::byte handle) {
      return [handle](CopyObject& object) {
        const std::byte bytes[] = {object.kind == Kind::File ? std::byte{1} : handle};
        object.handle = *nfs::client::Handle::from(bytes);
        if (object.kind == Kind::File) object.file_id = 1;
      };
    };
    from.show(number(std::byte{2}));
    to.show(number(std::byte{3}));
    CopyOptions options{.recursive = true, .directories = true, .one_server = one_server};
    complaints_.clear();
    EXPECT_EQ(run(copied(from, to, options, "top", "", "top")), !one_server);
    EXPECT_EQ(to.files().at("top/f"), one_server ? "old" : "changed");
  }
}

TEST_F(CopierTest, knows_all_of_its_sources_when_the_last_listing_ends) {
  FakeEndpoint from({{"a", {}}, {"a/d", {}}, {"a/d/f", "1"}, {"b", {}}, {"b/f", "2"}});
  std::vector<std::string> listed;
  from.tell([&](const std::string& what) {
    if (what.starts_with("list")) listed.push_back(what + std::to_string(progress_.unlisted));
  });
  write("dst/there", "");
  progress_.unlisted = 2;
  Copier::FirstNames names;
  Copier copier(run_, from, *local_, {.recursive = true}, names, progress_, [](const auto&) {});
  const auto copying = [&]() -> Task<bool> {
    co_await copier.copy("a", "a", at("dst"));
    co_await copier.copy("b", "b", at("dst"));
    const bool all_listed = progress_.unlisted == 0;
    co_await copier.complete();
    co_return all_listed;
  };
  EXPECT_TRUE(run(copying()));
  EXPECT_THAT(listed, ElementsAre("list a2", "list a/d2", "list b1"));
}

// Has what was copied to it at whole seconds, or every other of them.
class CoarseCopier : public LocalCopyTest {
 protected:
  void SetUp() override {
    LocalCopyTest::SetUp();
    write("src/f", "content");
    const timespec time{1'000'001, 999'999'999};
    const timespec times[] = {time, time};
    ASSERT_EQ(::utimensat(AT_FDCWD, at("src/f").c_str(), times, 0), 0);
    to_.tell([this](const std::string& what) { made_ += what == "make top/f"; });
    keep_times_of(1);
  }
  void keep_times_of(std::int64_t unit) {
    to_.show([unit](CopyObject& object) { object.modified.seconds = 1'000'001 / unit * unit; });
  }
  bool run_again(CopyOptions options) {
    options.recursive = options.directories = true;
    return copy_from(to_, options);
  }

  FakeEndpoint to_{FakeFiles{{"top", std::nullopt}}};
  int made_ = 0;
};

TEST_F(CoarseCopier, copies_nothing_again_where_whole_seconds_are_kept) {
  CopyOptions sync = mirror();
  sync.same = Same::SizeAndTime;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(run_again(sync));
  EXPECT_EQ(made_, 1);
  EXPECT_TRUE(run_again({.newer_only = true}));
  EXPECT_EQ(made_, 1);
  write("src/f", "another size");
  EXPECT_TRUE(run_again(sync));
  EXPECT_EQ(made_, 2);
}

TEST_F(CoarseCopier, takes_times_within_the_window_for_the_same) {
  keep_times_of(2);
  CopyOptions sync = mirror();
  sync.same = Same::SizeAndTime;
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(run_again(sync));
  EXPECT_EQ(made_, 2);
  sync.modify_window = 1;
  EXPECT_TRUE(run_again(sync));
  EXPECT_TRUE(run_again({.newer_only = true, .modify_window = 1}));
  EXPECT_EQ(made_, 2);
}

}  // namespace
}  // namespace stag::cli
