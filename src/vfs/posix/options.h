// What an exported folder is opened with (vfs/posix/posix.h). A value; copied when the folder is
// opened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/executor.h"

namespace stag::vfs::posix {

// What a file handle is made of.
enum class HandleKind : std::uint8_t {
  Automatic,  // Kernel where it works, else Table
  Kernel,     // the kernel's handle (name_to_handle_at); opening it needs CAP_DAC_READ_SEARCH
  Table,      // the inode's number and time of birth, which a table leads back to a name
};

// Which operations the thread of the caller's loop executes instead of a worker.
enum class AtOnce : std::uint8_t {
  Automatic,  // Always on disks and in memory of this machine, else (network, FUSE) Never
  Always,     // those that what is cached answers without blocking
  Never,      // none
};

struct Options {
  std::string root;  // path of an existing directory
  // Directory for the table of inodes (HandleKind::Table): the one where the server keeps the key
  // of its handles (nfs::ServerState), which clients must not see. open() fails where it lies in
  // `root` or around it. Empty: nothing is checked, the table stays in memory, and handles do not
  // survive a restart.
  std::string state_directory;
  HandleKind handles = HandleKind::Automatic;
  // Objects that are kept open, with up to three descriptors each; 0: a share, equal to that of
  // each other file system of the process, of what the limit on open files (RLIMIT_NOFILE)
  // suggests.
  std::size_t cached_objects = 0;
  // Makes changes of names and attributes durable before they are answered, as RFC 1813 section 4.8
  // wants. If false, a crash of the machine may undo changes that clients know to be done.
  bool durable_names = true;
  AtOnce at_once = AtOnce::Automatic;
  // Whether other programs of this machine use the files: lease() asks the kernel, which keeps
  // them waiting. If false, it says NotSupported.
  bool sees_local_programs = true;
  // Threads for operations that may block: `sync_workers` for those that end in an fsync, `workers`
  // for all others. Null: the threads of the caller's loop (Loop::offload). Jobs count against the
  // share of the caller's client (vfs::CallerContext).
  std::shared_ptr<Executor> workers{};
  std::shared_ptr<Executor> sync_workers{};
  // What attributes report as file_system_id; 0: the number of the file system that the folder is
  // on.
  std::uint64_t file_system_id = 0;
};

}  // namespace stag::vfs::posix
