#include "vfs/posix/layers.h"

#include <sys/mount.h>

#include <filesystem>
#include <fstream>

#include "testing/vfs/posix_backend.h"

namespace stag::vfs {
namespace {

namespace files = std::filesystem;

using testing::finish;

// A folder below, with a directory and a file in it, and a file system above.
class PosixOverlay : public ::testing::Test {
 protected:
  void SetUp() override {
    files::create_directories(path("low") / "directory");
    for (const char* name : {"above", "export"}) files::create_directory(path(name));
    above_ = testing::SmallDisk::on(path("above"), 1 << 20);
    if (above_ == nullptr) GTEST_SKIP() << "no right to mount";
    for (const char* name : {"upper", "work"}) files::create_directory(path("above") / name);
  }
  void TearDown() override { ::umount2(path("export").c_str(), MNT_DETACH); }
  files::path path(const char* name) const { return folder_.path() / name; }
  bool mount(const std::string& options) {
    const std::string layers = "lowerdir=" + path("low").string() +
                               ",upperdir=" + (path("above") / "upper").string() +
                               ",workdir=" + (path("above") / "work").string();
    return ::mount("none", path("export").c_str(), "overlay", 0, (layers + options).c_str()) == 0;
  }
  void make_file_below() { std::ofstream(path("low") / "directory" / "file").put('x'); }
  bool is_served() {
    PosixFileSystem::Options options;
    options.root = path("export");
    auto opened = PosixFileSystem::open(options);
    STAG_CHECK(opened.ok());
    testing::InlineLoop loop;
    const CallerContext caller{loop, {0, 0, {}}};
    const auto made = finish(loop, (*opened)->create(caller, (*opened)->root(), "new", {}));
    return made.ok();
  }

  const testing::Folder folder_{testing::kDisk};
  std::unique_ptr<testing::SmallDisk> above_;
};

TEST_F(PosixOverlay, has_files_that_are_not_served_over_several_file_systems) {
  make_file_below();
  if (!mount(",xino=off")) GTEST_SKIP() << "no overlays here";
  EXPECT_EQ(posix::file_of_another_device(path("export")), path("export") / "directory" / "file");
  EXPECT_FALSE(is_served());
}

TEST_F(PosixOverlay, is_served_where_its_files_have_numbers_of_their_own) {
  make_file_below();
  if (!mount(",xino=on")) GTEST_SKIP() << "no overlays here";
  EXPECT_EQ(posix::file_of_another_device(path("export")), "");
  EXPECT_TRUE(is_served());
}

TEST_F(PosixOverlay, may_have_other_file_systems_mounted_in_it) {
  std::ofstream(path("low") / "file").put('x');
  if (!mount(",xino=off")) GTEST_SKIP() << "no overlays here";
  const auto mounted = testing::SmallDisk::on(path("export") / "directory", 1 << 20);
  ASSERT_NE(mounted, nullptr);
  const files::path source = path("export") / "directory" / "file";
  std::ofstream(source).put('x');
  const files::path target = path("export") / "file";
  ASSERT_EQ(::mount(source.c_str(), target.c_str(), nullptr, MS_BIND, nullptr), 0);
  EXPECT_EQ(posix::file_of_another_device(path("export")), "");
  ::umount2(target.c_str(), MNT_DETACH);
}

}  // namespace
}  // namespace stag::vfs
