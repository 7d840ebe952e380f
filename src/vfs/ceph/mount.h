// ceph::Mount: one mounted CephFS, and what belongs to it: users' permissions, references to
// inodes, open files. Thread: any that may block.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "vfs/ceph/functions.h"
#include "vfs/ceph/options.h"
#include "vfs/types.h"

namespace stag::vfs::ceph {

class Mount {
 public:
  // Fails with one sentence for the user.
  static Result<std::unique_ptr<Mount>, std::string> open(const Options& options);
  // A mount of nothing: every call goes to `functions`.
  explicit Mount(std::shared_ptr<const Functions> functions) : functions_(std::move(functions)) {}
  // Data that is not written yet is; this may take as long as the cluster does.
  ~Mount();
  Mount(const Mount&) = delete;
  Mount& operator=(const Mount&) = delete;

  const Functions& call() const { return *functions_; }
  ceph_mount_info* get() const { return mount_; }
  // The rights of root, whom nothing stops.
  const UserPerm* root() const { return root_; }
  // What tells the file system from others of this machine.
  std::string file_system() const;

 private:
  int configure(const Options& options);
  int mount(const Options& options);

  const std::shared_ptr<const Functions> functions_;
  ceph_mount_info* mount_ = nullptr;
  UserPerm* root_ = nullptr;
  bool mounted_ = false;
};

// The permissions of a user; `who` outlives it.
class Permissions {
 public:
  Permissions(const Mount& mount, const Credentials& who);
  ~Permissions();
  Permissions(const Permissions&) = delete;
  Permissions& operator=(const Permissions&) = delete;
  const UserPerm* get() const { return permissions_; }

 private:
  const Mount& mount_;
  UserPerm* const permissions_;
};

// A reference to an inode, given back at the end.
class InodeRef {
 public:
  InodeRef() = default;
  InodeRef(const Mount& mount, Inode* inode) : mount_(&mount), inode_(inode) {}
  InodeRef(InodeRef&& other) noexcept
      : mount_(other.mount_), inode_(std::exchange(other.inode_, nullptr)) {}
  InodeRef& operator=(InodeRef&& other) noexcept {
    std::swap(mount_, other.mount_);
    std::swap(inode_, other.inode_);
    return *this;
  }
  ~InodeRef() {
    if (inode_ != nullptr) mount_->call().put(mount_->get(), inode_);
  }
  Inode* get() const { return inode_; }

 private:
  const Mount* mount_ = nullptr;
  Inode* inode_ = nullptr;
};

}  // namespace stag::vfs::ceph
