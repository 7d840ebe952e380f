// An export of CephFS, as the operator writes it in place of a folder:
//   ceph:PATH[?NAME=VALUE[&NAME=VALUE]...]
// PATH is a directory of the file system, from '/' on. The names are conf (a file like ceph.conf),
// id (the Ceph user client.ID), fs (the file system) and gateway (what this server is known as to
// the cluster).
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/serve/store_watch.h"
#include "vfs/vfs.h"

namespace stag::cli {

struct CephPlace {
  std::string path;
  std::string configuration;
  std::string id;
  std::string file_system;
  std::string gateway;
};

// Whether this program was built with CephFS.
bool serves_ceph();

bool is_ceph(std::string_view folder);
// The place that a folder which is_ceph() names. Fails with one sentence.
Result<CephPlace, std::string> parse_ceph(std::string_view folder);

// Whether to open `next` for an export that `served` is open for would end the mount of `served`:
// the cluster knows both by one name.
bool ends_mount(const CephPlace& served, const CephPlace& next);

// The attempts to mount CephFS, by export. One that takes too long goes on, and would end a later
// mount under the same gateway's name: until it has ended there is no other. Thread: any.
class CephAttempts {
 public:
  // Whether a caller waits for the attempt, which goes on as long as this exists.
  using Wanted = std::shared_ptr<std::atomic<bool>>;
  // Null: the last one goes on.
  Wanted begin(const std::string& name);

 private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<std::atomic<bool>>> last_;
};

// Mounts it, on a thread of its own. Blocks. Fails with one sentence,
// also where this program was built without CephFS. `name`: the export's.
Result<std::shared_ptr<vfs::FileSystem>, std::string> open_ceph(const CephPlace& place,
                                                                const std::string& name,
                                                                std::uint64_t file_system_id,
                                                                StoreWatch& stores,
                                                                CephAttempts& attempts);

}  // namespace stag::cli
