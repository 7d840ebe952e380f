#include "vfs/ceph/functions.h"

#include "base/loaded_library.h"

namespace stag::vfs::ceph {
namespace {

void find_mounting(LoadedLibrary& library, Functions& functions) {
  library.find("ceph_create", functions.create)
      .find("ceph_conf_read_file", functions.conf_read_file)
      .find("ceph_conf_set", functions.conf_set)
      .find("ceph_conf_get", functions.conf_get)
      .find("ceph_init", functions.init)
      .find("ceph_select_filesystem", functions.select_filesystem)
      .find("ceph_set_uuid", functions.set_uuid)
      .find("ceph_start_reclaim", functions.start_reclaim)
      .find("ceph_finish_reclaim", functions.finish_reclaim)
      .find("ceph_umask", functions.umask)
      .find("ceph_mount", functions.mount)
      .find("ceph_unmount", functions.unmount)
      .find("ceph_release", functions.release)
      .find("ceph_get_fs_cid", functions.get_fs_cid)
      .find("ceph_userperm_new", functions.userperm_new)
      .find("ceph_userperm_destroy", functions.userperm_destroy);
}

void find_objects(LoadedLibrary& library, Functions& functions) {
  library.find("ceph_ll_lookup_root", functions.lookup_root)
      .find("ceph_ll_lookup_vino", functions.lookup_vino)
      .find("ceph_ll_lookup", functions.lookup)
      .find("ceph_ll_put", functions.put)
      .find("ceph_ll_getattr", functions.getattr)
      .find("ceph_ll_setattr", functions.setattr)
      .find("ceph_ll_open", functions.open)
      .find("ceph_ll_close", functions.close)
      .find("ceph_ll_read", functions.read)
      .find("ceph_ll_write", functions.write)
      .find("ceph_ll_fsync", functions.fsync)
      .find("ceph_ll_sync_inode", functions.sync_inode)
      .find("ceph_ll_fallocate", functions.fallocate)
      .find("ceph_ll_getxattr", functions.getxattr)
      .find("ceph_ll_setxattr", functions.setxattr)
      .find("ceph_ll_listxattr", functions.listxattr)
      .find("ceph_ll_removexattr", functions.removexattr)
      .find("ceph_ll_statfs", functions.statfs);
}

void find_names(LoadedLibrary& library, Functions& functions) {
  library.find("ceph_ll_mknod", functions.mknod)
      .find("ceph_ll_mkdir", functions.mkdir)
      .find("ceph_ll_symlink", functions.symlink)
      .find("ceph_ll_readlink", functions.readlink)
      .find("ceph_ll_link", functions.link)
      .find("ceph_ll_unlink", functions.unlink)
      .find("ceph_ll_rmdir", functions.rmdir)
      .find("ceph_ll_rename", functions.rename)
      .find("ceph_ll_opendir", functions.opendir)
      .find("ceph_ll_releasedir", functions.releasedir)
      .find("ceph_seekdir", functions.seekdir)
      .find("ceph_readdirplus_r", functions.readdirplus);
}

}  // namespace

Result<std::shared_ptr<const Functions>, std::string> load_functions(const std::string& name) {
  auto functions = std::make_shared<Functions>();
  LoadedLibrary library(name);
  find_mounting(library, *functions);
  find_objects(library, *functions);
  find_names(library, *functions);
  if (!library.failure().empty()) return Failure{library.failure()};
  return std::shared_ptr<const Functions>(std::move(functions));
}

}  // namespace stag::vfs::ceph
