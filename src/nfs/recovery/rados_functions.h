// The functions of librados and libcephsqlite that records in RADOS take, found at run time. Their
// types are written here, as Ceph's headers have them, so that to build takes no part of Ceph. Each
// member does what the function rados_* with its name does, and yields a negative errno where it
// fails.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>

#include "base/result.h"

namespace stag::nfs::recovery {

struct RadosFunctions {
  using Cluster = void*;
  using Pool = void*;
  int (*create)(Cluster*, const char* id) = nullptr;
  int (*conf_read_file)(Cluster, const char* path) = nullptr;
  int (*conf_get)(Cluster, const char* option, char* to, std::size_t size) = nullptr;
  int (*connect)(Cluster) = nullptr;
  void (*shutdown)(Cluster) = nullptr;
  void* (*cct)(Cluster) = nullptr;
  int (*ioctx_create)(Cluster, const char* pool, Pool*) = nullptr;
  void (*ioctx_destroy)(Pool) = nullptr;
  void (*ioctx_set_namespace)(Pool, const char*) = nullptr;
  int (*stat)(Pool, const char* object, std::uint64_t* size, std::time_t* changed) = nullptr;
  ssize_t (*list_lockers)(Pool, const char* object, const char* lock, int* exclusive, char* tag,
                          std::size_t* tag_size, char* clients, std::size_t* clients_size,
                          char* cookies, std::size_t* cookies_size, char* addresses,
                          std::size_t* addresses_size) = nullptr;
  // cephsqlite_setcct: which context, and so which configuration and user, the VFS is to have.
  int (*set_vfs_context)(void* cct, char** address) = nullptr;
};

// Of the installed libraries, which stay loaded, with the VFS "ceph" registered with SQLite. Fails
// with what is missing.
Result<RadosFunctions, std::string> load_rados(const std::string& rados,
                                               const std::string& sqlite_vfs);

}  // namespace stag::nfs::recovery
