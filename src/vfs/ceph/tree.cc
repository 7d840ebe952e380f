#include "vfs/ceph/tree.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "vfs/acl_xattr.h"
#include "vfs/ceph/handle.h"
#include "vfs/change_rules.h"
#include "vfs/errors.h"
#include "vfs/file_format.h"

namespace stag::vfs::ceph {
namespace {

// Permission bits as in AclEntry.
constexpr std::uint32_t kMayRead = 4;
constexpr std::uint32_t kMayWrite = 2;
constexpr std::uint32_t kMayExecute = 1;

Time time_of(const timespec& time) {
  return {time.tv_sec, static_cast<std::uint32_t>(time.tv_nsec)};
}

// In place of a device number the library reports the snapshot.
ObjectKey key_of_stat(const Stat& stat) {
  return {stat.stx_ino,
          static_cast<std::uint64_t>(stat.stx_btime.tv_sec) * 1'000'000'000 +
              static_cast<std::uint64_t>(stat.stx_btime.tv_nsec),
          stat.stx_dev};
}

// A file has the same number in every snapshot, the directory of the snapshots that of the
// directory it is in, and clients take equal numbers for one object.
std::uint64_t file_id_of(const Stat& stat) {
  if (stat.stx_dev == ObjectKey::kNoSnapshot) return stat.stx_ino;
  const std::uint64_t seen =
      stat.stx_dev == ObjectKey::kOfSnapshots ? ~std::uint64_t{0} : stat.stx_dev + 1;
  return stat.stx_ino ^ seen << 44;
}

}  // namespace

Result<std::unique_ptr<Tree>, std::string> Tree::open(const Options& options) {
  std::uint64_t first_epoch = 0;
  if (::getrandom(&first_epoch, sizeof first_epoch, 0) != sizeof first_epoch)
    return Failure{std::string("the system gives no random numbers: ") + std::strerror(errno)};
  auto mount = Mount::open(options);
  if (!mount) return Failure{mount.error()};
  std::unique_ptr<Tree> tree(new Tree(options));
  tree->mount_ = *std::move(mount);
  tree->losses_.store(first_epoch);
  const std::size_t most = std::max<std::size_t>(options.open_files, 1);
  tree->readers_ = std::make_unique<OpenFiles>(*tree->mount_, O_RDONLY, most, tree->losses_);
  tree->writers_ = std::make_unique<OpenFiles>(*tree->mount_, O_WRONLY, most, tree->losses_);
  std::string fault = tree->open_root();
  if (!fault.empty()) return Failure{std::move(fault)};
  return tree;
}

void Tree::close_unused() {
  readers_->close_unused();
  writers_->close_unused();
}

std::string Tree::open_root() {
  Inode* inode = nullptr;
  if (const int failed = mount_->call().lookup_root(mount_->get(), &inode); failed < 0)
    return "cannot reach the root of the file system: " +
           std::string(to_string(status_of(-failed)));
  const InodeRef root(*mount_, inode);
  const auto found = stat(root.get());
  if (!found)
    return "cannot read the attributes of the root: " + std::string(to_string(found.error()));
  if (!S_ISDIR(found->stx_mode)) return "this is no directory";
  root_handle_ = handle_of(key_of_stat(*found));
  root_inode_ = found->stx_ino;
  const std::string_view name = text_of(root_handle_.bytes());
  const std::int64_t file_system = mount_->call().get_fs_cid(mount_->get());
  identity_ = "ceph " + std::to_string(file_system) + " " + std::string(name);
  handle_space_ = "ceph " + mount_->file_system();
  if (file_system_id_ == 0) file_system_id_ = load_be<std::uint64_t>(&root_handle_.bytes()[9]);
  return {};
}

Limits Tree::limits() {
  constexpr std::uint32_t kMaxLinks = 1'000'000'000;  // the file system sets no bound
  Limits limits;
  limits.max_file_size = kLargestFile;
  limits.max_links = kMaxLinks;
  limits.xattrs = true;
  return limits;
}

Outcome<Stat> Tree::stat(Inode* inode) const {
  Stat stat{};
  const int failed =
      mount_->call().getattr(mount_->get(), inode, &stat, CEPH_STATX_ALL_STATS, 0, mount_->root());
  if (failed == -ENOENT) return Failure{Status::Stale};
  if (failed < 0) return Failure{status_of(-failed)};
  return stat;
}

Attributes Tree::attributes_of(const Stat& stat) const {
  Attributes result;
  result.type = type_of_mode(stat.stx_mode);
  result.mode = stat.stx_mode & 07777u;
  result.links = stat.stx_nlink;
  result.uid = stat.stx_uid;
  result.gid = stat.stx_gid;
  result.size = stat.stx_size;
  result.used = stat.stx_blocks * 512;
  result.device = {major(stat.stx_rdev), minor(stat.stx_rdev)};
  result.file_system_id = file_system_id_;
  result.file_id = file_id_of(stat);
  result.accessed = time_of(stat.stx_atime);
  result.modified = time_of(stat.stx_mtime);
  result.changed = time_of(stat.stx_ctime);
  result.change = stat.stx_version;
  result.created = time_of(stat.stx_btime);
  return result;
}

// An inode without names is there only until the last client that uses it lets it go.
Outcome<Tree::Object> Tree::adopt(InodeRef inode, const Stat& stat) const {
  if (stat.stx_nlink == 0) return Failure{Status::Stale};
  return Object{std::move(inode), handle_of(key_of_stat(stat)), attributes_of(stat)};
}

Outcome<Tree::Object> Tree::object_of(InodeRef inode) const {
  const auto found = stat(inode.get());
  if (!found) return Failure{found.error()};
  return adopt(std::move(inode), *found);
}

Outcome<Tree::Object> Tree::resolve(const Handle& handle) const {
  const auto key = key_of(handle);
  if (!key) return Failure{Status::BadHandle};
  Inode* inode = nullptr;
  const int failed =
      mount_->call().lookup_vino(mount_->get(), {{key->inode}, key->snapshot}, &inode);
  if (failed == -ENOENT || failed == -EINVAL) return Failure{Status::Stale};
  if (failed < 0) return Failure{status_of(-failed)};
  auto object = object_of(InodeRef(*mount_, inode));
  if (object && !(object->handle == handle)) return Failure{Status::Stale};
  return object;
}

Outcome<Tree::Object> Tree::resolve_directory(const Handle& handle) const {
  auto object = resolve(handle);
  if (object && object->attributes.type != FileType::Directory)
    return Failure{Status::NotDirectory};
  return object;
}

Outcome<Tree::Object> Tree::resolve_file(const Handle& handle) const {
  auto object = resolve(handle);
  if (!object) return object;
  if (object->attributes.type == FileType::Directory) return Failure{Status::IsDirectory};
  if (object->attributes.type != FileType::Regular) return Failure{Status::Invalid};
  return object;
}

Change Tree::change_of(const Object& before) const {
  Change change;
  change.change_before = before.attributes.change;
  if (const auto after = stat(before.inode.get())) change.after = attributes_of(*after);
  return change;
}

bool Tree::permitted(const Credentials& who, const Object& object, std::uint32_t wanted) const {
  const Attributes& is = object.attributes;
  const bool directory = is.type == FileType::Directory;
  if (who.uid == 0) return (wanted & kMayExecute) == 0 || directory || (is.mode & 0111) != 0;
  auto acl = is.type == FileType::Symlink ? Outcome<Acl>(Acl()) : read_acl(object, kAccessAcl);
  if (!acl) return false;
  const Acl decides = acl->empty() ? Acl::of_mode(is.mode & 0777) : *std::move(acl);
  return decides.permits(is.uid, is.gid, who, wanted);
}

// Whether the caller may move data of the file: more than open(2) would let it (RFC 1813 4.4).
std::optional<Status> Tree::data_fault(const Credentials& who, const Object& file,
                                       bool writing) const {
  if (who.uid == 0 || who.uid == file.attributes.uid) return std::nullopt;
  const bool may = writing ? permitted(who, file, kMayWrite)
                           : permitted(who, file, kMayRead) || permitted(who, file, kMayExecute);
  return may ? std::nullopt : std::optional(Status::Access);
}

std::optional<Status> Tree::sync(const Object& object) {
  const int failed = mount_->call().sync_inode(mount_->get(), object.inode.get(), 0);
  if (failed >= 0) return std::nullopt;
  losses_.fetch_add(1);
  return status_of(-failed);
}

// Changed names and attributes are durable before the answer (RFC 1813 4.8), and with them the
// verifier of an exclusive create: without it a repeat would fail (3.3.8).
std::optional<Status> Tree::sync_change(const Object& object) {
  return durable_names_ ? sync(object) : std::nullopt;
}

Outcome<Attributes> Tree::attributes(const Handle& object) {
  const auto found = resolve(object);
  if (!found) return Failure{found.error()};
  return found->attributes;
}

Outcome<Access> Tree::access(const Credentials& who, const Handle& handle, std::uint32_t asked) {
  const auto object = resolve(handle);
  if (!object) return Failure{object.error()};
  const bool directory = object->attributes.type == FileType::Directory;
  std::uint32_t granted = 0;
  if ((asked & access::kRead) != 0 && permitted(who, *object, kMayRead)) granted |= access::kRead;
  const std::uint32_t executing = directory ? access::kLookup : access::kExecute;
  if ((asked & executing) != 0 && permitted(who, *object, kMayExecute)) granted |= executing;
  const std::uint32_t changing =
      access::kModify | access::kExtend | (directory ? access::kDelete : 0);
  if ((asked & changing) != 0 &&
      permitted(who, *object, directory ? kMayWrite | kMayExecute : kMayWrite))
    granted |= changing;
  return Access{granted & asked, object->attributes};
}

Outcome<Link> Tree::readlink(const Handle& symlink) {
  const auto object = resolve(symlink);
  if (!object) return Failure{object.error()};
  if (object->attributes.type != FileType::Symlink) return Failure{Status::NotSymlink};
  Link link{std::string(4096, '\0'), object->attributes};
  const int length = mount_->call().readlink(mount_->get(), object->inode.get(), link.target.data(),
                                             link.target.size(), mount_->root());
  if (length < 0) return Failure{status_of(-length)};
  link.target.resize(static_cast<std::size_t>(length));
  return link;
}

Outcome<Usage> Tree::usage() {
  const auto root = resolve(root_handle_);
  if (!root) return Failure{root.error()};
  struct statvfs space {};
  if (const int failed = mount_->call().statfs(mount_->get(), root->inode.get(), &space);
      failed < 0)
    return Failure{status_of(-failed)};
  Usage usage;
  usage.total_bytes = space.f_blocks * space.f_frsize;
  usage.free_bytes = space.f_bfree * space.f_frsize;
  usage.available_bytes = space.f_bavail * space.f_frsize;
  // There may be as many files as the cluster has room for; the library says how many there are.
  constexpr std::uint64_t kPlenty = std::uint64_t{1} << 40;
  usage.total_files = space.f_files + kPlenty;
  usage.free_files = usage.available_files = kPlenty;
  return usage;
}

}  // namespace stag::vfs::ceph
