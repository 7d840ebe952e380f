// vfs/posix under test: a store on a folder of its own, on a disk or in memory.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/xattr.h>

#include <filesystem>

#include "testing/vfs/fixture.h"
#include "vfs/posix/posix.h"

namespace stag::vfs::testing {

constexpr const char* kDisk = "/tmp";
// A tmpfs on most machines.
constexpr const char* kMemory = "/dev/shm";

// A fresh folder that goes with its owner.
class Folder {
 public:
  explicit Folder(const std::string& under) {
    std::string pattern = under + "/stag-vfs-XXXXXX";
    STAG_CHECK(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  Folder(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// A tmpfs on a folder for as long as this is there. Seen by this process only, whose mounts are its
// own from the first one on.
class SmallDisk {
 public:
  // Null without the right to mount.
  static std::unique_ptr<SmallDisk> on(const std::filesystem::path& folder, std::uint64_t bytes) {
    static const bool kOwnMounts = ::unshare(CLONE_NEWNS) == 0 &&
                                   ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    const std::string options = "nr_inodes=200,mode=1777,size=" + std::to_string(bytes);
    if (!kOwnMounts || ::mount("tmpfs", folder.c_str(), "tmpfs", 0, options.c_str()) != 0)
      return nullptr;
    return std::unique_ptr<SmallDisk>(new SmallDisk(folder));
  }
  SmallDisk(const SmallDisk&) = delete;
  ~SmallDisk() { ::umount2(folder_.c_str(), MNT_DETACH); }

 private:
  explicit SmallDisk(std::filesystem::path folder) : folder_(std::move(folder)) {}
  const std::filesystem::path folder_;
};

struct PosixKind {
  std::string under = kDisk;
  posix::HandleKind handles = posix::HandleKind::Automatic;
  posix::AtOnce at_once = posix::AtOnce::Automatic;
  bool durable_names = false;
  int large_directory = 5'000;
};

class PosixBackend final : public Backend {
 public:
  explicit PosixBackend(const PosixKind& kind, std::uint64_t small = 0)
      : folder_(kind.under), large_directory_(kind.large_directory) {
    std::filesystem::create_directory(export_path());
    std::filesystem::create_directory(folder_.path() / "state");
    STAG_CHECK(::chmod(export_path().c_str(), 01777) == 0);
    if (small != 0) disk_ = SmallDisk::on(export_path(), small);
    options_.root = export_path();
    options_.state_directory = folder_.path() / "state";
    options_.handles = kind.handles;
    options_.at_once = kind.at_once;
    options_.durable_names = kind.durable_names;
    open();
  }
  FileSystem& fs() override { return *fs_; }
  PosixFileSystem& posix() { return *fs_; }
  Properties properties() const override {
    Properties properties;
    properties.tells_users_apart = !PosixFileSystem::serves_all_as_one();
    properties.has_acls =
        ::getxattr(export_path().c_str(), "system.posix_acl_access", nullptr, 0) >= 0 ||
        errno != EOPNOTSUPP;
    struct statx root {};
    STAG_CHECK(::statx(AT_FDCWD, export_path().c_str(), 0, STATX_BTIME, &root) == 0);
    properties.knows_creation = (root.stx_mask & STATX_BTIME) != 0;
    properties.has_xattrs =
        ::getxattr(export_path().c_str(), "user.none", nullptr, 0) >= 0 || errno != EOPNOTSUPP;
    properties.clones = false;  // of ext4 and tmpfs, which the tests use
    properties.large_directory = large_directory_;
    return properties;
  }
  void restart() override {
    fs_.reset();
    open();
  }
  bool fill(std::string_view name, std::string_view prefix, int count) override {
    const std::string start = export_path() / name / prefix;
    for (int i = 0; i < count; ++i)
      STAG_CHECK(::mknod((start + std::to_string(i)).c_str(), S_IFREG | 0644, 0) == 0);
    return true;
  }
  bool is_small() const { return disk_ != nullptr; }
  std::filesystem::path export_path() const { return folder_.path() / "export"; }
  std::filesystem::path outside() const { return folder_.path(); }

 private:
  void open() {
    auto opened = PosixFileSystem::open(options_);
    STAG_CHECK(opened.ok());
    fs_ = *std::move(opened);
  }
  Folder folder_;
  const int large_directory_;
  std::unique_ptr<SmallDisk> disk_;
  PosixFileSystem::Options options_;
  std::unique_ptr<PosixFileSystem> fs_;
};

}  // namespace stag::vfs::testing
