#include "vfs/ceph/mount.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <new>

namespace stag::vfs::ceph {
namespace {

// Behind a positive number of its own, libcephfs hides what went wrong.
std::string error_text(int error) {
  if (error <= -CEPHFS_ERROR_MON_MAP_BUILD) return "no monitor of the cluster is known";
  return std::strerror(-error);
}

}  // namespace

Result<std::unique_ptr<Mount>, std::string> Mount::open(const Options& options) {
  auto functions = load_functions();
  if (!functions)
    return Failure{"CephFS wants libcephfs, which is not here (Debian: libcephfs2): " +
                   functions.error()};
  std::unique_ptr<Mount> mount(new Mount(*std::move(functions)));
  if (const int failed = mount->configure(options); failed < 0)
    return Failure{"cannot read the configuration of Ceph" +
                   (options.configuration.empty() ? "" : " in " + options.configuration) + ": " +
                   error_text(failed)};
  if (const int failed = mount->mount(options); failed < 0)
    return Failure{"cannot mount " + options.root + " of CephFS: " + error_text(failed)};
  mount->root_ = mount->call().userperm_new(0, 0, 0, nullptr);
  if (mount->root_ == nullptr) throw std::bad_alloc();
  return mount;
}

// The store's own rules want these, whatever the file says: the library checks permissions, with
// access control lists, and the size of a directory changes only when its entries do.
int Mount::configure(const Options& options) {
  const char* const id = options.id.empty() ? nullptr : options.id.c_str();
  const char* const file = options.configuration.empty() ? nullptr : options.configuration.c_str();
  if (const int failed = call().create(&mount_, id); failed < 0) return failed;
  if (const int failed = call().conf_read_file(mount_, file); failed < 0) return failed;
  constexpr std::array<std::pair<const char*, const char*>, 4> kSettings{
      {{"client_permissions", "true"},
       {"fuse_default_permissions", "false"},
       {"client_acl_type", "posix_acl"},
       {"client_dirsize_rbytes", "false"}}};
  for (const auto& [name, value] : kSettings)
    if (const int failed = call().conf_set(mount_, name, value); failed < 0) return failed;
  return 0;
}

int Mount::mount(const Options& options) {
  if (const int failed = call().init(mount_); failed < 0) return failed;
  if (!options.file_system.empty())
    if (const int failed = call().select_filesystem(mount_, options.file_system.c_str());
        failed < 0)
      return failed;
  if (options.wanted != nullptr && !options.wanted->load()) return -ECANCELED;
  if (!options.gateway.empty()) {
    const int reclaimed = call().start_reclaim(mount_, options.gateway.c_str(), CEPH_RECLAIM_RESET);
    if (reclaimed < 0 && reclaimed != -ENOENT) return reclaimed;
    call().finish_reclaim(mount_);
    call().set_uuid(mount_, options.gateway.c_str());
  }
  call().umask(mount_, 0);
  const int failed = call().mount(mount_, options.root.c_str());
  mounted_ = failed >= 0;
  return failed;
}

Mount::~Mount() {
  if (root_ != nullptr) call().userperm_destroy(root_);
  if (mounted_) call().unmount(mount_);
  if (mount_ != nullptr) call().release(mount_);
}

std::string Mount::file_system() const {
  std::array<char, 1024> monitors{};
  call().conf_get(mount_, "mon_host", monitors.data(), monitors.size() - 1);
  return std::string(monitors.data()) + " " + std::to_string(call().get_fs_cid(mount_));
}

// The library keeps the pointer to the groups, and changes nothing there.
Permissions::Permissions(const Mount& mount, const Credentials& who)
    : mount_(mount),
      permissions_(mount.call().userperm_new(who.uid, who.gid, static_cast<int>(who.groups.size()),
                                             const_cast<gid_t*>(who.groups.data()))) {
  if (permissions_ == nullptr) throw std::bad_alloc();
}

Permissions::~Permissions() {
  mount_.call().userperm_destroy(permissions_);
}

}  // namespace stag::vfs::ceph
