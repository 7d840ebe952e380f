// What a LocalEndpoint does when others who may write to its directories change them in the middle
// of a copy.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/copy/copier.h"
#include "cli/copy/copy_endpoint.h"
#include "cli/copy/fake_endpoint_test.h"
#include "net/loop.h"

namespace stag::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

constexpr const char* kChanged = "has changed meanwhile; copy it again";

// A folder in which a folder `victim` is that no copy concerns.
class LocalEndpointTest : public LocalCopyTest {
 protected:
  void SetUp() override {
    LocalCopyTest::SetUp();
    write("victim/precious", "of the victim");
  }
  void TearDown() override {
    EXPECT_THAT(names("victim"), ElementsAre("precious"));
    EXPECT_EQ(read("victim/precious"), "of the victim");
    LocalCopyTest::TearDown();
  }

  // What was at `path` gets another name beside it, and a symbolic link its own.
  void swap(const std::string& path, const std::string& target) const {
    fs::rename(at(path), at(path) + ".moved");
    fs::create_symlink(at(target), at(path));
  }
  // Swaps once, when the other end tells of `moment`.
  Told swap_at(std::string moment, std::string path, std::string target) const {
    return [=, this](const std::string& what) {
      if (what == moment) swap(path, target);
    };
  }
};

const FakeFiles kEmpty{{"top", {}}};
const FakeFiles kSource{{"top", {}}, {"top/sub", {}}, {"top/sub/f", "new"}, {"top/z", "last"}};

TEST_F(LocalEndpointTest, does_not_write_to_or_empty_what_a_directory_was_swapped_for) {
  // Before the directory is written to, and while a file in it is written.
  for (const char* moment : {"list top/sub", "feed top/sub/f"}) {
    complaints_.clear();
    write("dst/sub/old", "old");
    FakeEndpoint from(kSource);
    from.tell(swap_at(moment, "dst/sub", "victim"));
    EXPECT_FALSE(copy_to(from, mirror(), "")) << moment;
    EXPECT_THAT(complaints_, Contains(AllOf(HasSubstr("dst/sub"), HasSubstr(kChanged)))) << moment;
    EXPECT_THAT(names("victim"), ElementsAre("precious")) << moment;
    EXPECT_EQ(read("dst/z"), "last") << moment;
    fs::remove_all(at("dst"));
  }
}

TEST_F(LocalEndpointTest, does_not_write_to_what_a_new_directory_was_swapped_for) {
  fs::create_directory(at("dst"));
  CopyOptions options{.recursive = true};
  options.preserve.times = true;
  for (const char* moment : {"list top/sub", "feed top/sub/f"}) {
    complaints_.clear();
    FakeEndpoint from(kSource);
    from.tell(swap_at(moment, "dst/new/sub", "victim"));
    EXPECT_FALSE(copy_to(from, options, "new")) << moment;
    EXPECT_THAT(complaints_, Contains(AllOf(HasSubstr("dst/new/sub"), HasSubstr(kChanged))));
    EXPECT_THAT(names("victim"), ElementsAre("precious")) << moment;
    EXPECT_EQ(read("dst/new/z"), "last") << moment;
    fs::remove_all(at("dst/new"));
  }
}

TEST_F(LocalEndpointTest, does_not_empty_what_a_directory_was_swapped_for_during_its_removal) {
  for (const char* name : {"a", "b"}) write(std::string("dst/extra/") + name + "/f", "old");
  FakeEndpoint from(kSource);
  announced_ = [this, swapped = false](const std::string& path) mutable {
    if (swapped || !path.ends_with("/f") || path.find("/extra/") == std::string::npos) return;
    swapped = true;
    swap(path == at("dst/extra/a/f") ? "dst/extra/b" : "dst/extra/a", "victim");
  };
  EXPECT_FALSE(copy_to(from, mirror(), ""));
  EXPECT_THAT(complaints_, ElementsAre(HasSubstr(kChanged)));
  EXPECT_EQ(read("dst/z"), "last");
}

TEST_F(LocalEndpointTest, does_not_list_for_removal_a_directory_that_another_one_has_come_for) {
  write("dst/sub/old", "old");
  write("dst/other/kept", "kept");
  FakeEndpoint from(kSource);
  from.files()["top/other"] = std::nullopt;
  from.files()["top/other/kept"] = "kept";
  from.tell([this](const std::string& what) {
    if (what != "feed top/sub/f") return;
    fs::rename(at("dst/sub"), at("moved"));
    fs::rename(at("dst/other"), at("dst/sub"));
  });
  EXPECT_FALSE(copy_to(from, mirror(), ""));
  EXPECT_THAT(complaints_, Contains(AllOf(HasSubstr("dst/sub"), HasSubstr(kChanged))));
  EXPECT_EQ(read("dst/sub/kept"), "kept");
}

TEST_F(LocalEndpointTest, does_not_read_what_a_source_file_was_swapped_for) {
  for (const char* name : {"f", "g"}) write(std::string("src/") + name, name);
  FakeEndpoint to(kEmpty);
  // Whichever comes first: the other one has been listed, and is not open.
  to.tell([this, swapped = false](const std::string& what) mutable {
    if (!std::exchange(swapped, true))
      swap(what == "make top/f" ? "src/g" : "src/f", "victim/precious");
  });
  EXPECT_FALSE(copy_from(to, {.recursive = true, .directories = true, .files_in_flight = 1}));
  EXPECT_THAT(complaints_, ElementsAre(HasSubstr(kChanged)));
  EXPECT_EQ(to.files().size(), 2U);
  for (const auto& [path, content] : to.files()) EXPECT_NE(content, "of the victim") << path;
}

TEST_F(LocalEndpointTest, does_not_read_another_file_in_the_place_of_a_source_file) {
  write("src/f", "f");
  FakeEndpoint to(kEmpty);
  to.tell([this](const std::string&) {
    write("secret", "secret");
    fs::rename(at("secret"), at("src/f"));
  });
  EXPECT_FALSE(copy_from(to, {.recursive = true, .directories = true}));
  EXPECT_THAT(complaints_, ElementsAre(HasSubstr(kChanged)));
  EXPECT_THAT(to.files(), ElementsAre(Key("top")));
}

TEST_F(LocalEndpointTest, does_not_list_what_a_source_directory_was_swapped_for) {
  write("src/sub/f", "f");
  write("src/z", "last");
  FakeEndpoint to(kEmpty);
  to.tell(swap_at("mkdir top/sub", "src/sub", "victim"));
  EXPECT_FALSE(copy_from(to, {.recursive = true, .directories = true}));
  EXPECT_THAT(complaints_, ElementsAre(AllOf(HasSubstr("src/sub"), HasSubstr(kChanged))));
  EXPECT_THAT(to.files(), UnorderedElementsAre(Key("top"), Key("top/sub"), Key("top/z")));
}

// Each operation by itself, on objects that were found before the swap.
TEST_F(LocalEndpointTest, compares_what_it_opens_with_what_was_found) {
  write("dst/sub/f", "f");
  fs::create_symlink("text", at("dst/sub/link"));
  const CopyObject top = **run(local_->find(at("dst"), Follow::Yes));
  const CopyObject sub = **run(local_->find_in(top, "sub"));
  const CopyObject file = **run(local_->find_in(sub, "f"));
  const CopyObject link = **run(local_->find_in(sub, "link"));
  fs::rename(at("dst/sub/f"), at("dst/sub/f.moved"));
  fs::create_symlink(at("victim/precious"), at("dst/sub/f"));
  fs::rename(at("dst/sub/link"), at("dst/sub/link.moved"));
  fs::create_symlink("other", at("dst/sub/link"));
  const auto changed = [](const auto& outcome) {
    return !outcome && outcome.error().sentence.ends_with(kChanged);
  };
  std::byte first{};
  EXPECT_TRUE(changed(run(local_->read_at(file, 0, MutableBytes(&first, 1)))));
  EXPECT_TRUE(changed(run(local_->check_readable(file))));
  EXPECT_TRUE(changed(run(local_->extras(file, {.xattrs = true, .acls = true}))));
  EXPECT_TRUE(changed(run(local_->finish(file, {.mode = 0777}))));
  EXPECT_TRUE(changed(run(local_->adopt(file, {.xattrs = {{"x", "y"}}}))));
  EXPECT_TRUE(changed(run(local_->readlink(link))));
  EXPECT_TRUE(changed(run(local_->link(file, top, "linked"))));
  EXPECT_THAT(names("dst"), ElementsAre("sub"));
  swap("dst/sub", "victim");
  // A new one, which has no directory open.
  local_ = local_endpoint(run_, progress_);
  EXPECT_TRUE(changed(run(local_->find_in(sub, "precious"))));
  EXPECT_TRUE(changed(run(local_->members(sub)->next())));
  EXPECT_TRUE(changed(run(local_->mkdir(sub, "new", 0777))));
  EXPECT_TRUE(changed(run(local_->symlink(sub, "new", "text", {}))));
  EXPECT_TRUE(changed(run(local_->mknod(sub, "new", {}, {}))));
  EXPECT_TRUE(changed(run(local_->temp_file(sub, "new", {}))));
  EXPECT_TRUE(changed(run(local_->remove(sub, {"precious", file}))));
  EXPECT_TRUE(changed(run(local_->finish(sub, {.mode = 0777}))));
  EXPECT_TRUE(changed(run(local_->adopt(sub, {.xattrs = {{"x", "y"}}}))));
}

TEST_F(LocalEndpointTest, writes_no_other_file_in_place) {
  write("dst/f", "f");
  write("other", "other");
  const CopyObject top = **run(local_->find(at("dst"), Follow::Yes));
  const CopyObject file = **run(local_->find_in(top, "f"));
  fs::rename(at("other"), at("dst/f"));
  TempFilePlan plan;
  plan.existing = file;
  plan.in_place = true;
  const auto opened = run(local_->temp_file(top, "f", plan));
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().sentence, HasSubstr(kChanged));
  EXPECT_EQ(read("dst/f"), "other");
}

TEST_F(LocalEndpointTest, follows_links_in_what_the_user_has_named) {
  write("src/f", "f");
  fs::create_symlink(at("src"), at("named"));
  fs::create_symlink(at("src/f"), at("file"));
  FakeEndpoint to(kEmpty);
  EXPECT_TRUE(run(copied(*local_, to, {}, at("file"), "a", "top")));
  EXPECT_TRUE(run(copied(*local_, to, {}, at("named/f"), "b", "top")));
  EXPECT_TRUE(run(copied(*local_, to, {.recursive = true}, at("named/."), "c", "top")));
  EXPECT_THAT(to.files(),
              ElementsAre(Key("top"), Key("top/a"), Key("top/b"), Key("top/c"), Key("top/c/f")));
  EXPECT_THAT(complaints_, IsEmpty());
}

// As the filters of containers do that do not know openat2(2), for good. False: there are none
// here.
bool refuse_openat2(std::uint32_t error) {
  std::array<sock_filter, 4> rules{{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                                    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
                                    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
                                    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}};
  const sock_fprog filter{rules.size(), rules.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST_F(LocalEndpointTest, follows_no_link_either_where_openat2_is_refused) {
  write("dst/sub/deep/f", "f");
  for (const int error : {ENOSYS, EPERM}) {
    const auto as_container = [&] {
      if (!refuse_openat2(static_cast<std::uint32_t>(error))) std::_Exit(1);
      const CopyObject top = **run(local_->find(at("dst"), Follow::Yes));
      const CopyObject sub = **run(local_->find_in(top, "sub"));
      const CopyObject deep = **run(local_->find_in(sub, "deep"));
      const bool listed = run(local_->members(deep)->next())->size() == 1;
      swap("dst/sub", "victim");
      fs::rename(at("dst/sub.moved/deep"), at("victim/deep"));
      // It is the directory that was found, but behind a link.
      local_ = local_endpoint(run_, progress_);
      const auto again = run(local_->members(deep)->next());
      const bool refused = !again && again.error().sentence.ends_with(kChanged);
      fs::rename(at("victim/deep"), at("dst/sub.moved/deep"));
      fs::remove(at("dst/sub"));
      fs::rename(at("dst/sub.moved"), at("dst/sub"));
      std::_Exit(listed && refused ? 0 : 2);
    };
    EXPECT_EXIT(as_container(), ::testing::ExitedWithCode(0), "") << error;
  }
}

TEST_F(LocalEndpointTest, goes_on_in_the_directory_that_was_found_when_its_name_leads_elsewhere) {
  fs::create_directory(at("dst"));
  FakeEndpoint from(kSource);
  from.tell(swap_at("list top", "dst", "victim"));
  // What would be changed by its name in the end is not.
  EXPECT_FALSE(copy_to(from, mirror(), ""));
  EXPECT_EQ(read("dst.moved/z"), "last");
}

}  // namespace
}  // namespace stag::cli
