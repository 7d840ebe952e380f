// Mount: a directory of this machine that shows the files of an NFS server, by FUSE (libfuse3,
// low-level interface). No kernel module of an NFS client, no RDMA hardware and no root are needed:
// for users, fusermount3 mounts.
//
// Thread: one loop, which reads the requests of the kernel and runs the calls to the server.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/task.h"
#include "net/loop.h"
#include "nfs/client/file_system.h"

namespace stag::fuse {

struct MountOptions {
  std::string directory;               // where the files appear; exists
  std::string source;                  // what mount(8) and df(1) show
  std::vector<std::string> options{};  // of mount.fuse(8): "ro", "allow_other", "nosuid", ...
  double valid = 1;     // seconds for which the kernel may use attributes and names unasked
  bool direct = false;  // the kernel caches no data
  bool seeks = false;   // the files are of a version that finds holes in them
  // Bytes that the kernel reads ahead of programs, where this process may tell it (root); zero: as
  // many as it does by itself.
  std::uint64_t read_ahead = 0;
  // So many requests of the kernel wait for the server for more than a minute, the first of them by
  // the thread `first`; or none does any more. May be empty.
  std::function<void(std::size_t requests, pid_t first)> on_long_waits{};
  // So many bytes that programs wrote to a file, which they have closed, are not written again: the
  // call that was to make them safe had no usable Reply. May be empty.
  std::function<void(std::uint64_t file_id, std::size_t bytes, const nfs::client::Error& why)>
      on_given_up{};
};

class Mount {
 public:
  // Mounts the object `root` of `files`, which outlive the Mount. Kind::Local: FUSE does not let
  // this user, or not there; the sentence says what to do.
  static nfs::client::Outcome<std::unique_ptr<Mount>> open(net::EpollLoop& loop,
                                                           nfs::client::FileSystem& files,
                                                           const nfs::client::Node& root,
                                                           const MountOptions& options);
  virtual ~Mount() = default;

  // Ends when the directory shows the files no more: a user has unmounted it, or unmount() did.
  virtual Task<void> unmounted() = 0;
  // Ends when no call for the mount is in progress. Awaited before the end, after unmounted().
  // `calls`, which the `files` are cancelled by, is cancelled when the server does not answer in
  // time: after seconds, or after a lease where data is not on its stable storage yet.
  virtual Task<void> settled(CancelSource& calls) = 0;
  // Takes the mount out of the tree of directories, also while it is in use: programs that have
  // files open get errors from then on. At once, or when the kernel has written what programs have
  // changed in mappings: seconds later, where the server does not answer.
  virtual void unmount() = 0;
};

}  // namespace stag::fuse
