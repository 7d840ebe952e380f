#include "vfs/posix/state_overlap.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <cstdint>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "base/unique_fd.h"

namespace stag::vfs::posix {
namespace {

using Identity = std::pair<dev_t, ino_t>;

// The folder and all above it, up to where its file system is mounted.
std::vector<Identity> ancestors_of(int folder) {
  std::vector<Identity> found;
  int at = ::fcntl(folder, F_DUPFD_CLOEXEC, 0);
  struct stat status {};
  while (at >= 0 && ::fstat(at, &status) == 0) {
    const Identity here{status.st_dev, status.st_ino};
    if (!found.empty() && (here == found.back() || here.first != found.front().first)) break;
    found.push_back(here);
    const int above = ::openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    ::close(std::exchange(at, above));
  }
  if (at >= 0) ::close(at);
  return found;
}

// /proc/self/mountinfo escapes blanks and backslashes as \ooo.
std::string unescaped(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    unsigned octal = 0;
    if (text[0] == '\\' && text.size() >= 4 &&
        std::from_chars(text.data() + 1, text.data() + 4, octal, 8).ptr == text.data() + 4) {
      plain += static_cast<char>(octal);
      text.remove_prefix(4);
    } else {
      plain += text[0];
      text.remove_prefix(1);
    }
  }
  return plain;
}

// The path of a folder within its file system, wherever that is mounted.
struct PathOnDevice {
  std::string device;  // "major:minor"
  std::string path;    // ends with '/'
};

// Bind mounts show a part of a file system elsewhere, where ".." does not lead to its parent
// folder.
std::optional<PathOnDevice> path_on_device(int folder) {
  struct statx status {};
  if (::statx(folder, "", AT_EMPTY_PATH, STATX_MNT_ID, &status) != 0 ||
      (status.stx_mask & STATX_MNT_ID) == 0)
    return std::nullopt;
  std::array<char, PATH_MAX> buffer;
  const std::string link = "/proc/self/fd/" + std::to_string(folder);
  const ssize_t length = ::readlink(link.c_str(), buffer.data(), buffer.size());
  if (length <= 0) return std::nullopt;
  const std::string path(buffer.data(), static_cast<std::size_t>(length));
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream fields(line);
    std::uint64_t id = 0;
    std::string parent, device, root, mounted_at;
    if (!(fields >> id >> parent >> device >> root >> mounted_at) || id != status.stx_mnt_id)
      continue;
    const std::string mount_point = unescaped(mounted_at);
    if (!path.starts_with(mount_point)) return std::nullopt;
    const std::string below = path.substr(mount_point == "/" ? 0 : mount_point.size());
    const std::string above = unescaped(root);
    return PathOnDevice{device,
                        (above == "/" ? "" : above) + below + (below.ends_with('/') ? "" : "/")};
  }
  return std::nullopt;
}

class OpenFolder {
 public:
  explicit OpenFolder(const std::string& path)
      : folder_(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
    if (!folder_) return;
    ancestors_ = ancestors_of(folder_.fd());
    path_on_device_ = path_on_device(folder_.fd());
  }
  bool lies_in(const OpenFolder& other) const {
    if (ancestors_.empty() || other.ancestors_.empty()) return false;
    const Identity& top = other.ancestors_.front();
    if (std::find(ancestors_.begin(), ancestors_.end(), top) != ancestors_.end()) return true;
    return path_on_device_ && other.path_on_device_ &&
           path_on_device_->device == other.path_on_device_->device &&
           path_on_device_->path.starts_with(other.path_on_device_->path);
  }

 private:
  UniqueFd folder_;
  std::vector<Identity> ancestors_;  // empty when it could not be opened
  std::optional<PathOnDevice> path_on_device_;
};

}  // namespace

std::string state_overlap(const std::string& folder, const std::string& state_directory) {
  const OpenFolder exported(folder);
  const OpenFolder state(state_directory);
  const std::string the_export = "the exported folder '" + folder + "'";
  const std::string the_state = "the state directory '" + state_directory + "'";
  const std::string harm =
      ": clients could read the key that protects all file handles, or change what the server "
      "remembers";
  if (state.lies_in(exported)) return the_state + " lies in " + the_export + harm;
  if (exported.lies_in(state)) return the_export + " lies in " + the_state + harm;
  return {};
}

}  // namespace stag::vfs::posix
