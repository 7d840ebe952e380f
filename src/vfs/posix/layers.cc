#include "vfs/posix/layers.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <filesystem>

namespace stag::vfs::posix {
namespace {

namespace files = std::filesystem;

constexpr int kMostNames = 1000;

bool is_overlay(const std::string& folder) {
  struct statfs kind {};
  return ::statfs(folder.c_str(), &kind) == 0 &&
         static_cast<std::uint32_t>(kind.f_type) == OVERLAYFS_SUPER_MAGIC;
}

bool look_at(const char* path, struct statx& found) {
  return ::statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE, &found) == 0;
}

}  // namespace

std::string file_of_another_device(const std::string& folder) {
  struct statx top {};
  if (!is_overlay(folder) || ::statx(AT_FDCWD, folder.c_str(), 0, STATX_TYPE, &top) != 0) return {};
  std::error_code fault;
  int names = 0;
  for (files::recursive_directory_iterator at(
           folder, files::directory_options::skip_permission_denied, fault);
       !fault && at != files::recursive_directory_iterator() && ++names <= kMostNames;
       at.increment(fault)) {
    struct statx found {};
    const bool looked = look_at(at->path().c_str(), found);
    const bool same =
        found.stx_dev_major == top.stx_dev_major && found.stx_dev_minor == top.stx_dev_minor;
    if (looked && same) continue;
    // What is mounted there is left out on purpose.
    const bool mounted = (found.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
    if (looked && !mounted && !S_ISDIR(found.stx_mode)) return at->path();
    at.disable_recursion_pending();
  }
  return {};
}

}  // namespace stag::vfs::posix
