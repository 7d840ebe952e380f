#include "fuse/mount_point.h"

#define FUSE_USE_VERSION 314
#include <fcntl.h>
#include <fmt/format.h>
#include <fuse_lowlevel.h>
#include <unistd.h>

#include <fstream>
#include <new>
#include <sstream>
#include <utility>

#include "fuse/read_ahead.h"

namespace stag::fuse {
namespace {

// As /proc/self/mountinfo has it.
std::string escaped(std::string_view path) {
  std::string word;
  for (const char c : path) {
    if (std::string_view(" \t\n\\").find(c) == std::string_view::npos)
      word.push_back(c);
    else
      word += fmt::format("\\{:03o}", static_cast<unsigned>(c));
  }
  return word;
}

// The file system is not asked: it may be one that does not answer. Empty: it is not known.
std::string device_on(std::string_view directory) {
  try {
    std::ifstream mountinfo("/proc/self/mountinfo");
    return device_mounted_on(directory, mountinfo);
  } catch (const std::bad_alloc&) {
    return {};
  }
}

// libfuse lets the directory be where the session's descriptor says that the mount has gone, as a
// pipe without a reader does. False: there can be none.
bool disown(fuse_session* session) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  ::close(ends[0]);
  const bool done = dup3(ends[1], fuse_session_fd(session), O_CLOEXEC) >= 0;
  ::close(ends[1]);
  return done;
}

}  // namespace

std::string device_mounted_on(std::string_view directory, std::istream& mountinfo) {
  const std::string place = escaped(directory);
  std::string last;
  for (std::string line; std::getline(mountinfo, line);) {
    std::istringstream words(line);
    std::string id, parent, device, root, mounted_on;
    if (words >> id >> parent >> device >> root >> mounted_on && mounted_on == place) last = device;
  }
  return last;
}

nfs::client::Error cannot_mount(std::string_view directory) {
  return nfs::client::Error::of_local(fmt::format(
      "FUSE does not mount on '{}': see what it wrote above; is the directory there and yours, is "
      "fusermount3 installed (package fuse3), and may you use /dev/fuse?",
      directory));
}

bool MountPoint::mount(fuse_session* session, std::uint64_t read_ahead) {
  const UniqueFd devices = open_backing_devices();
  if (fuse_session_mount(session, directory_.c_str()) != 0) return false;
  mounted_ = true;
  device_ = device_on(directory_);
  if (read_ahead != 0) set_read_ahead(devices, device_, read_ahead);
  return true;
}

void MountPoint::unmount(fuse_session* session) {
  if (!std::exchange(mounted_, false)) return;
  if (device_.empty() || device_on(directory_) == device_ || disown(session))
    fuse_session_unmount(session);
}

}  // namespace stag::fuse
