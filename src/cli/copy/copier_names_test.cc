// What the Copier does where the destination takes names for one that are two in the source.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "cli/copy/copier.h"
#include "cli/copy/fake_endpoint_test.h"

namespace stag::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class CopierNames : public LocalCopyTest {
 protected:
  // Has the contents of "top" of `from` in the destination, which has `files` before.
  bool sync(FakeFiles files) { return bring(mirror(), std::move(files)); }
  bool copy(FakeFiles files) {
    return bring({.recursive = true, .directories = true}, std::move(files));
  }
  bool bring(CopyOptions options, FakeFiles files) {
    options.same = Same::SizeAndTime;
    FakeEndpoint from(source_), to(std::move(files));
    to.fold();
    to.show(shown_);
    to.tell([this](const std::string& what) { done_.push_back(what); });
    const bool well = run(copied(from, to, options, "top", "", "top"));
    after_ = to.files();
    return well;
  }

  FakeFiles source_, after_;
  std::vector<std::string> done_;
  std::function<void(CopyObject&)> shown_ = [](CopyObject&) {};
};

TEST_F(CopierNames, a_mirror_keeps_a_file_that_it_has_in_another_spelling) {
  source_ = {{"top", {}}, {"top/README", "same"}};
  EXPECT_TRUE(sync({{"top", {}}, {"top/readme", "same"}, {"top/the-rest", ""}}));
  EXPECT_EQ(after_, source_);
  EXPECT_THAT(done_, ElementsAre("list top", StartsWith("rename top/readme .stag-"),
                                 AllOf(StartsWith("rename top/.stag-"), EndsWith(" README")),
                                 "remove top/the-rest"));
}

TEST_F(CopierNames, a_mirror_keeps_a_file_that_it_has_just_replaced) {
  source_ = {{"top", {}}, {"top/README", "new content"}};
  EXPECT_TRUE(sync({{"top", {}}, {"top/readme", "old"}}));
  EXPECT_EQ(after_, source_);
}

TEST_F(CopierNames, a_mirror_keeps_a_folder_and_all_that_is_in_it) {
  source_ = {{"top", {}}, {"top/Photos", {}}, {"top/Photos/P1", "1"}, {"top/Photos/p2", "2"}};
  EXPECT_TRUE(
      sync({{"top", {}}, {"top/photos", {}}, {"top/photos/p1", "1"}, {"top/photos/p2", "2"}}));
  EXPECT_EQ(after_, source_);
}

TEST_F(CopierNames, a_mirror_keeps_what_is_excluded_in_another_spelling) {
  source_ = {{"top", {}}, {"top/README", "same"}};
  CopyOptions options = mirror();
  options.exclusion = Exclusion({"README"});
  const FakeFiles before{{"top", {}}, {"top/readme", "other"}};
  EXPECT_TRUE(bring(options, before));
  EXPECT_EQ(after_.size(), before.size());
}

TEST_F(CopierNames, a_dry_run_removes_nothing_that_is_there_in_another_spelling) {
  source_ = {{"top", {}}, {"top/README", "same"}};
  CopyOptions options = mirror();
  options.dry_run = true;
  std::vector<std::string> announced;
  announced_ = [&announced](const std::string& path) { announced.push_back(path); };
  EXPECT_TRUE(bring(options, {{"top", {}}, {"top/readme", "same"}, {"top/old", ""}}));
  EXPECT_THAT(announced, ElementsAre("fake:top/old"));
}

TEST_F(CopierNames, the_second_of_two_that_are_one_there_fails_and_the_first_stays) {
  source_ = {{"top", {}}, {"top/README", "first"}, {"top/readme", "second"}};
  const FakeFiles one{{"top", {}}, {"top/README", "first"}};
  const auto refused =
      ElementsAre(AllOf(HasSubstr("fake:top/readme: the destination takes its name for 'README'"),
                        HasSubstr("rename one of them")));
  EXPECT_FALSE(copy({{"top", {}}}));
  EXPECT_EQ(after_, one);
  EXPECT_THAT(std::exchange(complaints_, {}), refused);
  // The first is there by now.
  EXPECT_FALSE(copy(one));
  EXPECT_EQ(after_, one);
  EXPECT_THAT(std::exchange(complaints_, {}), refused);
  EXPECT_FALSE(sync(one));
  EXPECT_EQ(after_, one);
  EXPECT_THAT(complaints_, refused);
}

TEST_F(CopierNames, the_second_of_two_in_a_new_folder_fails_folders_too) {
  source_ = {
      {"top", {}},       {"top/new", {}},      {"top/new/A", {}},      {"top/new/A/f", "1"},
      {"top/new/a", {}}, {"top/new/a/f", "2"}, {"top/new/x", "first"}, {"top/new/X.", "another"}};
  EXPECT_FALSE(copy({{"top", {}}}));
  EXPECT_EQ(after_.at("top/new/A/f"), "1");
  EXPECT_THAT(complaints_, ElementsAre(HasSubstr("fake:top/new/a: the destination takes")));
  // It has a name of its own there.
  EXPECT_EQ(after_.at("top/new/X."), "another");
}

TEST_F(CopierNames, two_links_of_one_file_are_two_names_and_no_spellings) {
  source_ = {{"top", {}}, {"top/A", "first"}, {"top/a", "second"}};
  const FakeFiles both{{"top", {}}, {"top/A", "first"}, {"top/a", "second"}};
  shown_ = [](CopyObject& object) {
    if (object.kind != Kind::File) return;
    object.file_id = 7;
    object.links = 2;
  };
  FakeEndpoint from(source_), to(both);
  to.show(shown_);
  CopyOptions options{.recursive = true, .directories = true, .replace_linked = true};
  EXPECT_TRUE(run(copied(from, to, options, "top", "", "top")));
  EXPECT_THAT(complaints_, IsEmpty());
}

TEST_F(CopierNames, nothing_of_another_kind_is_removed_that_the_source_has_by_its_spelling) {
  source_ = {{"top", {}}, {"top/Photos", "a file"}, {"top/photos", {}}, {"top/photos/p", "1"}};
  const FakeFiles before{{"top", {}}, {"top/photos", {}}, {"top/photos/p", "1"}};
  EXPECT_FALSE(sync(before));
  EXPECT_EQ(after_, before);
  EXPECT_THAT(complaints_, Contains(HasSubstr("fake:top/Photos: the destination takes")));
}

TEST_F(CopierNames, no_source_replaces_what_an_earlier_one_has_made_in_another_spelling) {
  FakeEndpoint from({{"a", {}}, {"a/README", "first"}, {"b", {}}, {"b/readme", "second"}});
  FakeEndpoint to(FakeFiles{{"top", {}}});
  to.fold();
  for (const bool contents : {false, true}) {
    JustMade made;
    CopyOptions options{.recursive = contents, .just_made = &made};
    Copier::FirstNames names;
    complaints_.clear();
    Copier copier(run_, from, to, options, names, progress_,
                  [this](const std::string& sentence) { complaints_.push_back(sentence); });
    const auto copying = [&]() -> Task<bool> {
      co_await copier.copy(contents ? "a" : "a/README", contents ? "" : "README", "top");
      co_await copier.copy(contents ? "b" : "b/readme", contents ? "" : "readme", "top");
      co_await copier.complete();
      co_return copier.all_well();
    };
    EXPECT_FALSE(run(copying()));
    EXPECT_THAT(complaints_,
                ElementsAre(HasSubstr("will not overwrite just-created 'fake:top/README'")));
    EXPECT_EQ(to.files().at("top/README"), "first");
  }
}

TEST_F(CopierNames, nothing_that_has_come_to_the_name_of_a_new_file_is_replaced) {
  write("dst/other", "");
  FakeEndpoint from({{"top", {}}, {"top/f", "content"}});
  from.tell([this](const std::string& what) {
    if (what == "feed top/f") write("dst/f", "another's");
  });
  EXPECT_FALSE(copy_to(from, {.recursive = true, .directories = true}, ""));
  EXPECT_EQ(read("dst/f"), "another's");
  EXPECT_THAT(complaints_, ElementsAre(HasSubstr("exists")));
}

TEST_F(CopierNames, a_name_is_looked_for_in_a_new_folder_only_where_another_one_resembles_it) {
  for (const std::string other : {"other", "README"}) {
    write("src/new/readme", "1");
    write("src/new/" + other, "2");
    FakeEndpoint to(FakeFiles{{"top", {}}});
    EXPECT_TRUE(copy_from(to, {.recursive = true, .directories = true}));
    // The folder itself is.
    EXPECT_EQ(to.lookups() > 1, other == "README");
    EXPECT_EQ(to.files().at("top/new/" + other), "2");
  }
}

}  // namespace
}  // namespace stag::cli
