#include "testing/nfs/client_harness.h"

namespace stag::nfs::client {
namespace {

// /dir/sub/file, and links of every kind.
class ClientWalk : public ClientTest {
 protected:
  ClientWalk() {
    const Handle top = files().root();
    dir_ = must(files().mkdir(top, "dir", {.mode = 0755})).handle;
    sub_ = must(files().mkdir(dir_, "sub", {.mode = 0755})).handle;
    file_ = must(files().create(sub_, "file", {.mode = 0644})).handle;
  }
  void link(const Handle& where, const std::string& name, const std::string& target) {
    must(files().symlink(where, name, target));
  }
  Handle at(const std::string& path, Links links = Links::Follow) {
    return must(files().walk(path, links)).handle;
  }

  Handle dir_, sub_, file_;
};

TEST_F(ClientWalk, goes_from_name_to_name_whatever_the_slashes) {
  EXPECT_EQ(at(""), files().root());
  EXPECT_EQ(at("/"), files().root());
  EXPECT_EQ(at("dir"), dir_);
  EXPECT_EQ(at("/dir/sub/file"), file_);
  EXPECT_EQ(at("//dir///sub/"), sub_);
  EXPECT_EQ(at("./dir/./sub/../sub/."), sub_);
  EXPECT_EQ(must(files().walk_from(dir_, "sub/file")).handle, file_);
  EXPECT_EQ(must(files().walk("")).attributes.type, FileType::Directory);
}

TEST_F(ClientWalk, reports_the_path_that_leads_nowhere) {
  const Error none = error(files().walk("dir/nothing/file"));
  EXPECT_TRUE(none.is(Status::NoEntry));
  EXPECT_EQ(none.sentence,
            "cannot find 'dir/nothing/file': no such file or directory; check the path");
  EXPECT_EQ(status(files().walk("dir/sub/file/more")), Status::NotDirectory);
}

TEST_F(ClientWalk, follows_relative_links_from_where_they_stand) {
  link(sub_, "up", "..");
  link(dir_, "here", "sub/file");
  link(files().root(), "hop", "dir/here");
  EXPECT_EQ(at("dir/sub/up"), dir_);
  EXPECT_EQ(at("hop"), file_);
  EXPECT_EQ(at("dir/sub/up/sub/up/here"), file_);
}

TEST_F(ClientWalk, follows_absolute_links_that_stay_below_the_mounted_path) {
  link(sub_, "top", "/data");
  link(sub_, "abs", "/data/dir/sub/file");
  EXPECT_EQ(at("dir/sub/top"), files().root());
  EXPECT_EQ(at("dir/sub/abs"), file_);
  EXPECT_EQ(at("dir/sub/top/dir/sub/abs"), file_);
}

TEST_F(ClientWalk, refuses_absolute_links_that_lead_out) {
  link(dir_, "out", "/etc/passwd");
  link(dir_, "near", "/database");
  for (const char* path : {"dir/out", "dir/near"}) {
    const Error out = error(files().walk(path));
    EXPECT_EQ(out.kind, Error::Kind::Links);
    EXPECT_NE(out.sentence.find("outside of what is mounted"), std::string::npos);
  }
}

TEST_F(ClientWalk, ends_in_a_circle_of_links) {
  link(dir_, "a", "b");
  link(dir_, "b", "a");
  link(dir_, "self", "self/more");
  for (const char* path : {"dir/a", "dir/self"}) {
    const Error circle = error(files().walk(path));
    EXPECT_EQ(circle.kind, Error::Kind::Links);
    EXPECT_NE(circle.sentence.find("too many symbolic links"), std::string::npos);
  }
}

TEST_F(ClientWalk, follows_as_many_links_as_it_may) {
  std::string target = "sub/file";
  for (std::uint32_t i = 0; i < options_.max_links; ++i) {
    link(dir_, "l" + std::to_string(i), target);
    target = "l" + std::to_string(i);
  }
  EXPECT_EQ(at("dir/" + target), file_);
  link(dir_, "toomuch", target);
  EXPECT_EQ(error(files().walk("dir/toomuch")).kind, Error::Kind::Links);
}

TEST_F(ClientWalk, stops_at_the_last_link_with_FollowAllButLast) {
  link(files().root(), "l", "dir");
  EXPECT_EQ(must(files().walk("l", Links::FollowAllButLast)).attributes.type, FileType::Symlink);
  EXPECT_EQ(at("l/sub", Links::FollowAllButLast), sub_);
  EXPECT_EQ(at("l/", Links::FollowAllButLast), dir_);
}

TEST_F(ClientWalk, finds_what_a_dangling_link_does_not) {
  link(dir_, "dangling", "nowhere");
  EXPECT_EQ(status(files().walk("dir/dangling")), Status::NoEntry);
}

}  // namespace
}  // namespace stag::nfs::client
