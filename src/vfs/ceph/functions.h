// The functions of libcephfs that the store calls, as a table: found at run time with dlopen(), so
// that a server without CephFS needs no part of Ceph, and does not wait for its libraries to load.
// Each member does what the function of libcephfs.h with its name does; all may block, and yield
// 0 or more, or a negative errno.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

// libcephfs.h declares these two for C++ and leaves their content to Ceph's own headers.
struct inodeno_t {
  std::uint64_t val = 0;
};
struct vinodeno_t {
  inodeno_t ino;
  std::uint64_t snapid = 0;
};

#include <cephfs/libcephfs.h>

namespace stag::vfs::ceph {

// A function has the name of the structure.
using Stat = struct ::ceph_statx;

struct Functions {
  decltype(&::ceph_create) create = nullptr;
  decltype(&::ceph_conf_read_file) conf_read_file = nullptr;
  decltype(&::ceph_conf_set) conf_set = nullptr;
  decltype(&::ceph_conf_get) conf_get = nullptr;
  decltype(&::ceph_init) init = nullptr;
  decltype(&::ceph_select_filesystem) select_filesystem = nullptr;
  decltype(&::ceph_set_uuid) set_uuid = nullptr;
  decltype(&::ceph_start_reclaim) start_reclaim = nullptr;
  decltype(&::ceph_finish_reclaim) finish_reclaim = nullptr;
  decltype(&::ceph_umask) umask = nullptr;
  decltype(&::ceph_mount) mount = nullptr;
  decltype(&::ceph_unmount) unmount = nullptr;
  decltype(&::ceph_release) release = nullptr;
  decltype(&::ceph_get_fs_cid) get_fs_cid = nullptr;
  decltype(&::ceph_userperm_new) userperm_new = nullptr;
  decltype(&::ceph_userperm_destroy) userperm_destroy = nullptr;

  decltype(&::ceph_ll_lookup_root) lookup_root = nullptr;
  decltype(&::ceph_ll_lookup_vino) lookup_vino = nullptr;
  decltype(&::ceph_ll_lookup) lookup = nullptr;
  decltype(&::ceph_ll_put) put = nullptr;
  decltype(&::ceph_ll_getattr) getattr = nullptr;
  decltype(&::ceph_ll_setattr) setattr = nullptr;
  decltype(&::ceph_ll_open) open = nullptr;
  decltype(&::ceph_ll_close) close = nullptr;
  decltype(&::ceph_ll_read) read = nullptr;
  decltype(&::ceph_ll_write) write = nullptr;
  decltype(&::ceph_ll_fsync) fsync = nullptr;
  decltype(&::ceph_ll_sync_inode) sync_inode = nullptr;
  decltype(&::ceph_ll_fallocate) fallocate = nullptr;
  decltype(&::ceph_ll_getxattr) getxattr = nullptr;
  decltype(&::ceph_ll_setxattr) setxattr = nullptr;
  decltype(&::ceph_ll_listxattr) listxattr = nullptr;
  decltype(&::ceph_ll_removexattr) removexattr = nullptr;
  decltype(&::ceph_ll_mknod) mknod = nullptr;
  decltype(&::ceph_ll_mkdir) mkdir = nullptr;
  decltype(&::ceph_ll_symlink) symlink = nullptr;
  decltype(&::ceph_ll_readlink) readlink = nullptr;
  decltype(&::ceph_ll_link) link = nullptr;
  decltype(&::ceph_ll_unlink) unlink = nullptr;
  decltype(&::ceph_ll_rmdir) rmdir = nullptr;
  decltype(&::ceph_ll_rename) rename = nullptr;
  decltype(&::ceph_ll_statfs) statfs = nullptr;
  decltype(&::ceph_ll_opendir) opendir = nullptr;
  decltype(&::ceph_ll_releasedir) releasedir = nullptr;
  decltype(&::ceph_seekdir) seekdir = nullptr;
  decltype(&::ceph_readdirplus_r) readdirplus = nullptr;
};

// The functions of the installed libcephfs, which stays loaded. Fails with what is missing.
Result<std::shared_ptr<const Functions>, std::string> load_functions(
    const std::string& library = "libcephfs.so.2");

}  // namespace stag::vfs::ceph
