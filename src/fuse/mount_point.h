// MountPoint: the directory that a mount is made on, and taken from again. libfuse knows it by its
// path, where something else may be mounted by then: after `umount --lazy` a mount goes on for the
// programs that use it, and another one may have its place.
//
// Thread: the loop of the Mount.
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <string_view>
#include <utility>

#include "nfs/client/protocol/error.h"

struct fuse_session;

namespace stag::fuse {

// The device number ("0:53") of what was mounted last on `directory`, a path without symbolic
// links, by the lines of /proc/self/mountinfo (proc(5)). Empty: nothing was.
std::string device_mounted_on(std::string_view directory, std::istream& mountinfo);

// FUSE does not let this user mount there.
nfs::client::Error cannot_mount(std::string_view directory);

class MountPoint {
 public:
  explicit MountPoint(std::string directory) : directory_(std::move(directory)) {}

  // False: FUSE does not mount there, and has said why on standard error. `read_ahead`: see
  // MountOptions.
  bool mount(fuse_session* session, std::uint64_t read_ahead);
  // Closes the session's descriptor, and unmounts what mount() has mounted, if it is seen there.
  void unmount(fuse_session* session);

 private:
  std::string directory_;
  std::string device_;  // empty: not known
  bool mounted_ = false;
};

}  // namespace stag::fuse
