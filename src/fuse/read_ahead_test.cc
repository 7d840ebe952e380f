#include "fuse/read_ahead.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace stag::fuse {
namespace {

namespace fs = std::filesystem;

// Empty: there can be none.
fs::path directory_in(const fs::path& place) {
  std::string name = (place / "stag-read-ahead-XXXXXX").string();
  return mkdtemp(name.data()) != nullptr ? fs::path(name) : fs::path();
}
std::string content(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}
dev_t device_of(const fs::path& path) {
  struct stat found {};
  return stat(path.c_str(), &found) == 0 ? found.st_dev : 0;
}

// A folder like /sys/class/bdi, where the file system 0:53 reads 128 KiB ahead.
class ReadAhead : public ::testing::Test {
 protected:
  ReadAhead() {
    fs::create_directories(root_ / "devices" / "0:53");
    fs::create_directory(root_ / "bdi");
    fs::create_directory_symlink("../devices/0:53", root_ / "bdi" / "0:53");
    std::ofstream(setting()) << "128\n";
    devices_ = UniqueFd(::open((root_ / "bdi").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  ~ReadAhead() override { fs::remove_all(root_); }

  fs::path setting() const { return root_ / "devices" / "0:53" / "read_ahead_kb"; }

  const fs::path root_ = directory_in(fs::temp_directory_path());
  UniqueFd devices_;
};

TEST_F(ReadAhead, is_written_in_KiB_for_the_device_of_the_mount) {
  set_read_ahead(devices_, "0:53", 1 << 20);
  EXPECT_EQ(content(setting()), "1024\n");
}

TEST_F(ReadAhead, stays_as_it_is_where_the_device_is_not_known) {
  set_read_ahead(devices_, "", 1 << 20);
  set_read_ahead(devices_, "0:54", 1 << 20);
  set_read_ahead(UniqueFd(), "0:53", 1 << 20);
  EXPECT_EQ(content(setting()), "128\n");
}

// As where the mount lies on the way, and nobody answers who looks for the file there.
TEST_F(ReadAhead, is_looked_for_in_no_other_file_system) {
  const fs::path other = directory_in("/dev/shm");
  if (other.empty() || device_of(other) == device_of(root_)) {
    if (!other.empty()) fs::remove_all(other);
    GTEST_SKIP() << "there is no other file system";
  }
  fs::copy(setting(), other / "read_ahead_kb");
  fs::create_directory_symlink(other, root_ / "bdi" / "0:55");
  set_read_ahead(devices_, "0:55", 1 << 20);
  EXPECT_EQ(content(other / "read_ahead_kb"), "128\n");
  fs::remove_all(other);
}

TEST_F(ReadAhead, waits_for_no_reader_of_a_pipe) {
  fs::remove(setting());
  ASSERT_EQ(mkfifo(setting().c_str(), 0600), 0);
  set_read_ahead(devices_, "0:53", 1 << 20);
}

}  // namespace
}  // namespace stag::fuse
