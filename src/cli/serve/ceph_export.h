// An export of CephFS, as the operator writes it in place of a folder:
//   ceph:PATH[?NAME=VALUE[&NAME=VALUE]...]
// PATH is a directory of the file system, from '/' on. The names are conf (a file like ceph.conf),
// id (the Ceph user client.ID), fs (the file system) and gateway (what this server is known as to
// the cluster).
#pragma once

#include <cstdint>
#include <memory>
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

// Mounts it, on a thread of its own. Blocks. Fails with one sentence,
// also where this program was built without CephFS. `name`: the export's.
Result<std::shared_ptr<vfs::FileSystem>, std::string> open_ceph(const CephPlace& place,
                                                                const std::string& name,
                                                                std::uint64_t file_system_id,
                                                                StoreWatch& stores);

}  // namespace stag::cli
