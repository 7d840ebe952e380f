// What the Copier does about a source that changes while it is copied.
#include "cli/copy/copier.h"

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

nfs::client::Time time_in(const timespec& time) {
  return {time.tv_sec, static_cast<std::uint32_t>(time.tv_nsec)};
}

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
    object.modified = time_in(known.st_mtim);
    object.modified.nanoseconds -= object.modified.nanoseconds % 1000;
    object.changed = time_in(known.st_ctim);
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

}  // namespace
}  // namespace stag::cli
