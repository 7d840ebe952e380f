#include "fuse/read_ahead.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace stag::fuse {
namespace {

// Never into another file system: the mount may lie on the way.
UniqueFd open_for_writing(const UniqueFd& directory, const std::string& path) {
  struct open_how how {};
  how.flags = O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  how.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS;
  return UniqueFd(
      static_cast<int>(::syscall(SYS_openat2, directory.fd(), path.c_str(), &how, sizeof how)));
}

}  // namespace

UniqueFd open_backing_devices() {
  return UniqueFd(::open("/sys/class/bdi", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

void set_read_ahead(const UniqueFd& devices, const std::string& device, std::uint64_t bytes) {
  if (!devices || device.empty()) return;
  const UniqueFd file = open_for_writing(devices, device + "/read_ahead_kb");
  if (!file) return;
  const std::string kib = fmt::format("{}\n", bytes / 1024);
  static_cast<void>(!::write(file.fd(), kib.data(), kib.size()));
}

}  // namespace stag::fuse
