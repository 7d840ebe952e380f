// What a CephFS is opened with (vfs/ceph/ceph.h). A value; copied when it is opened.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/executor.h"

namespace stag::vfs::ceph {

struct Options {
  std::string root = "/";  // path of an existing directory of the file system
  // A file in the form of ceph.conf; empty: where Ceph looks for it ($CEPH_CONF, /etc/ceph).
  std::string configuration;
  std::string id;           // of the Ceph user: client.ID; empty: Ceph's default, "admin"
  std::string file_system;  // its name; empty: the cluster's default
  // Names this mount to the cluster for as long as it goes by that name. What a mount of the same
  // name has left there, because its process died, is taken away from it when this one is opened,
  // and so is a mount that still lives. Empty: no name.
  std::string gateway;
  // Asked before anything is taken away under that name: the caller that waits for the mount may
  // have given up long ago. Null: a caller waits.
  std::shared_ptr<const std::atomic<bool>> wanted{};
  // Regular files that are kept open for reading, and for writing.
  std::size_t open_files = 1024;
  // Makes changes of names and attributes durable before they are answered, as RFC 1813 section 4.8
  // wants. If false, they may be undone when a metadata server and this process are lost together.
  bool durable_names = true;
  // Threads for all operations: `sync_workers` for those that end in a sync, `workers` for all
  // others. Null: the threads of the caller's loop (Loop::offload). Jobs count against the share of
  // the caller's client (vfs::CallerContext).
  std::shared_ptr<Executor> workers{};
  std::shared_ptr<Executor> sync_workers{};
  // What attributes report as file_system_id; 0: a number of the file system's own.
  std::uint64_t file_system_id = 0;
};

}  // namespace stag::vfs::ceph
