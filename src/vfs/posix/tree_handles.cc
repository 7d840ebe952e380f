// Handles, and the objects that they lead to.
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include <climits>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "base/siphash.h"
#include "vfs/posix/credentials.h"
#include "vfs/posix/errors.h"
#include "vfs/posix/open_handle.h"
#include "vfs/posix/tree.h"

namespace stag::vfs::posix {
namespace {

// The first byte of a handle is its kind; behind it are the kernel's type and bytes, or an
// InodeKey.
constexpr std::byte kKernelHandle{1};
constexpr std::byte kTableHandle{2};
constexpr std::size_t kTableHandleSize = 1 + 16;
constexpr std::size_t kKernelBytes = Handle::kMaxSize - 2;
// Bounds what a handle may cost that leads nowhere; more than ext4 lets one file have.
constexpr std::size_t kMostNamesTried = 1 << 16;

struct KernelHandle {
  // The system's struct ends in bytes of its own choosing; it is laid over this memory.
  alignas(struct file_handle) std::byte memory[sizeof(struct file_handle) + kKernelBytes];
  struct file_handle* get() {
    return reinterpret_cast<struct file_handle*>(memory);
  }
};

bool has_time_of_birth(const struct statx& stat) {
  return (stat.stx_mask & STATX_BTIME) != 0;
}

std::uint64_t time_of_birth(const struct statx& stat) {
  const auto seconds = static_cast<std::uint64_t>(stat.stx_btime.tv_sec);
  return has_time_of_birth(stat) ? seconds * 1'000'000'000 + stat.stx_btime.tv_nsec : 0;
}

Handle handle_of_key(InodeKey key) {
  std::array<std::byte, kTableHandleSize> bytes;
  bytes[0] = kTableHandle;
  store_be(&bytes[1], key.inode);
  store_be(&bytes[9], key.born);
  return *Handle::from(bytes);
}

std::optional<InodeKey> key_of_handle(const Handle& handle) {
  const Bytes bytes = handle.bytes();
  if (bytes.size() != kTableHandleSize || bytes[0] != kTableHandle) return std::nullopt;
  return InodeKey{load_be<std::uint64_t>(&bytes[1]), load_be<std::uint64_t>(&bytes[9])};
}

// `name` in the directory; "": what the descriptor itself is of.
bool name_by_kernel(int descriptor, const char* name, KernelHandle& handle) {
  int mount = 0;
  handle.get()->handle_bytes = kKernelBytes;
  if (::name_to_handle_at(descriptor, name, handle.get(), &mount, AT_EMPTY_PATH) != 0) return false;
  return handle.get()->handle_type >= 0 && handle.get()->handle_type <= 0xff;
}

// The same after a restart; not 0.
std::uint64_t hash_of(KernelHandle& handle) {
  SipHash hash(SipKey{});
  const auto type = static_cast<std::byte>(handle.get()->handle_type);
  hash.add(Bytes(&type, 1));
  hash.add(Bytes(reinterpret_cast<const std::byte*>(handle.get()->f_handle),
                 handle.get()->handle_bytes));
  return std::max<std::uint64_t>(hash.finish(), 1);
}

bool is_fuse(const UniqueFd& folder) {
  struct statfs about {};
  return ::statfs(ProcPath(folder).text(), &about) == 0 &&
         static_cast<std::uint32_t>(about.f_type) == FUSE_SUPER_MAGIC;
}

std::string path_of(const UniqueFd& descriptor) {
  char path[PATH_MAX + 1];
  const ssize_t length = ::readlink(ProcPath(descriptor).text(), path, sizeof path);
  return length < 0 ? std::string() : std::string(path, static_cast<std::size_t>(length));
}

int open_relative(int directory, const char* name, std::uint64_t resolve) {
  struct open_how how {};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  how.resolve =
      RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV | resolve;
  return static_cast<int>(::syscall(SYS_openat2, directory, name, &how, sizeof how));
}

// The same, which makes room for the descriptor.
int open_name(int directory, const std::string& name, std::uint64_t resolve) {
  const int fd = open_relative(directory, name.c_str(), resolve);
  if (fd >= 0 || (errno != EMFILE && errno != ENFILE)) return fd;
  ObjectCache::drop_all();
  return open_relative(directory, name.c_str(), resolve);
}

// A mount point is a place where the export ends.
Failure<Status> entry_error() {
  return Failure{errno == EXDEV ? Status::Access : status_of(errno)};
}

}  // namespace

bool Tree::kernel_handles_work() const {
  KernelHandle handle;
  const auto reader = root_->open_reader();
  if (!reader || !name_by_kernel(root_->path.fd(), "", handle)) return false;
  return static_cast<bool>(
      UniqueFd(::open_by_handle_at((*reader)->fd(), handle.get(), O_PATH | O_CLOEXEC)));
}

// FUSE's handles have the number of a node, which another one may have once the kernel has
// forgotten it: those of files that are there would become stale.
Tree::TellsInodesApart Tree::what_tells_inodes_apart(const struct statx& root) const {
  if (has_time_of_birth(root)) return TellsInodesApart::TimeOfBirth;
  KernelHandle handle;
  const bool named = !is_fuse(root_->path) && name_by_kernel(root_->path.fd(), "", handle);
  return named ? TellsInodesApart::KernelHandle : TellsInodesApart::Table;
}

// The root's number is no other one's while it is exported, and clients keep its handle for long.
InodeKey Tree::key_of(int descriptor, const char* name, const struct statx& stat) const {
  const std::uint64_t inode = stat.stx_ino;
  if (apart_by_ == TellsInodesApart::TimeOfBirth || inode == root_inode_)
    return {inode, time_of_birth(stat)};
  if (apart_by_ == TellsInodesApart::Table) return {inode, table_->number_left(inode)};
  KernelHandle handle;
  return {inode, name_by_kernel(descriptor, name, handle) ? hash_of(handle) : 0};
}

Outcome<Handle> Tree::handle_of(const UniqueFd& path, const struct statx& stat) const {
  if (table_ != nullptr) return handle_of_key(key_of(path.fd(), "", stat));
  KernelHandle handle;
  if (!name_by_kernel(path.fd(), "", handle)) return last_error();
  std::array<std::byte, Handle::kMaxSize> bytes;
  bytes[0] = kKernelHandle;
  bytes[1] = static_cast<std::byte>(handle.get()->handle_type);
  std::memcpy(&bytes[2], handle.get()->f_handle, handle.get()->handle_bytes);
  return *Handle::from(Bytes(bytes).first(2 + handle.get()->handle_bytes));
}

// Some file systems derive their f_fsid from the number of the device (XFS) or have none; those
// numbers may change when the machine starts, and are left out. The kernel's handle of a folder has
// its inode and, where inodes are used again, a generation.
std::string Tree::identity_of(const Handle& root, const struct statx& stat) const {
  std::array<std::byte, 3 * 8> numbers;
  store_be(&numbers[0], file_system_id_ == device_ ? std::uint64_t{0} : file_system_id_);
  store_be(&numbers[8], std::uint64_t{stat.stx_ino});
  store_be(&numbers[16], time_of_birth(stat));
  const auto text = [](Bytes bytes) {
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  return text(numbers) + text(root.bytes());
}

std::uint64_t Tree::lasting_id(const struct statx& root) const {
  if (file_system_id_ != device_) return file_system_id_;
  const std::uint64_t born = time_of_birth(root);
  return born != 0 ? born : device_;
}

Outcome<UniqueFd> Tree::open_by_kernel(const Handle& handle) {
  const Bytes bytes = handle.bytes();
  if (bytes.size() < 3 || bytes[0] != kKernelHandle) return Failure{Status::BadHandle};
  KernelHandle kernel;
  kernel.get()->handle_bytes = static_cast<unsigned>(bytes.size() - 2);
  kernel.get()->handle_type = std::to_integer<int>(bytes[1]);
  std::memcpy(kernel.get()->f_handle, &bytes[2], bytes.size() - 2);
  const auto reader = root_->open_reader();
  if (!reader) return Failure{reader.error()};
  for (const bool first : {true, false}) {
    const int fd = open_handle([&] {
      return ::open_by_handle_at((*reader)->fd(), kernel.get(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
    });
    if (fd >= 0) return UniqueFd(fd);
    if (!first || (errno != EMFILE && errno != ENFILE)) break;
    ObjectCache::drop_all();
  }
  if (errno == EINVAL || errno == EOVERFLOW) return Failure{Status::BadHandle};
  if (errno == ENOENT) return Failure{Status::Stale};
  return last_error();
}

// Finds an object by the names that it was seen under: up from its directories and theirs to one
// that is open, and down again by those names that still lead there. Each name is tried once,
// wherever wrong ones lead round in circles.
class Tree::NameSearch {
 public:
  NameSearch(Tree& tree, InodeKey wanted) : tree_(tree), wanted_(wanted) { ask(wanted); }

  Outcome<ObjectRef> run() {
    while (!unasked_.empty()) {
      const InodeKey key = unasked_.back();
      unasked_.pop_back();
      auto names = tree_.table_->names_of(key);
      if (!names) {
        knows_all_ = false;
        return Failure{Status::Io};
      }
      for (NameOfInode& seen : *names) {
        if (++names_ > kMostNamesTried) {
          knows_all_ = false;
          return Failure{Status::Stale};
        }
        const Handle directory = handle_of_key(seen.directory);
        below_[directory].emplace_back(std::move(seen.name), key);
        if (const ObjectRef open = tree_.find_open(directory))
          descend(open);
        else
          ask(seen.directory);
        if (found_ != nullptr) return found_;
      }
    }
    return Failure{Status::Stale};
  }
  // Whether each name was followed or found to lead elsewhere.
  bool knows_all() const { return knows_all_; }

 private:
  using NamesBelow = std::vector<std::pair<std::string, InodeKey>>;

  void ask(InodeKey key) {
    if (asked_.insert(handle_of_key(key)).second) unasked_.push_back(key);
  }

  // Tries the names that wait for this directory, and for those that they lead to.
  void descend(const ObjectRef& from) {
    std::vector<ObjectRef> directories{from};
    while (!directories.empty()) {
      const ObjectRef directory = std::move(directories.back());
      directories.pop_back();
      for (const auto& [name, key] : std::exchange(below_[directory->handle], {})) {
        ObjectRef object = follow(*directory, name, key);
        if (object == nullptr) continue;
        if (key == wanted_) {
          found_ = std::move(object);
          return;
        }
        asked_.erase(object->handle);  // The cache may not have it for long.
        directories.push_back(std::move(object));
      }
    }
  }

  ObjectRef follow(const Object& directory, const std::string& name, InodeKey key) {
    UniqueFd path(open_name(directory.path.fd(), name, 0));
    const auto found = path ? tree_.stat(path) : Outcome<struct statx>(entry_error());
    if (!found) {
      const bool gone = found.error() == Status::NoEntry || found.error() == Status::Stale;
      knows_all_ = knows_all_ && gone;
      return nullptr;
    }
    if (tree_.key_of(path.fd(), "", *found) != key) return nullptr;
    const auto kept = tree_.keep(handle_of_key(key), std::move(path), *found);
    // Whether a directory lies beneath the root may have been impossible to find out.
    if (!kept) {
      knows_all_ = false;
      return nullptr;
    }
    // It may have been retired while the object, or a directory above it, was elsewhere.
    (void)tree_.table_->record(*key_of_handle(directory.handle), name, key);
    return *kept;
  }

  Tree& tree_;
  const InodeKey wanted_;
  ObjectRef found_;
  std::size_t names_ = 0;
  bool knows_all_ = true;
  std::vector<InodeKey> unasked_;
  std::unordered_set<Handle, HandleHash> asked_;
  std::unordered_map<Handle, NamesBelow, HandleHash> below_;  // names not tried, by directory
};

ObjectRef Tree::find_open(const Handle& handle) {
  return handle == root_->handle ? root_ : cache_->find(handle);
}

Outcome<ObjectRef> Tree::resolve(const Handle& handle) {
  if (ObjectRef open = find_open(handle)) {
    // A directory may have been moved out of the tree since it was opened.
    if (open->type == FileType::Directory)
      if (const auto fault = directory_fault(*open)) return Failure{*fault};
    return open;
  }
  if (table_ != nullptr) {
    const auto key = key_of_handle(handle);
    if (!key) return Failure{Status::BadHandle};
    return NameSearch(*this, *key).run();
  }
  auto path = open_by_kernel(handle);
  if (!path) return Failure{path.error()};
  const auto stat_result = stat(*path);
  if (!stat_result) return Failure{stat_result.error()};
  return keep(handle, *std::move(path), *stat_result);
}

Outcome<ObjectRef> Tree::find_directory(InodeKey key) {
  if (ObjectRef open = find_open(handle_of_key(key))) return open;
  NameSearch search(*this, key);
  Outcome<ObjectRef> found = search.run();
  if (!found && !search.knows_all()) return Failure{Status::Delay};
  return found;
}

Outcome<ObjectRef> Tree::keep(const Handle& handle, UniqueFd path, const struct statx& stat) {
  if (::makedev(stat.stx_dev_major, stat.stx_dev_minor) != device_) return Failure{Status::Stale};
  const FileType type = attributes_of(stat).type;
  if (type == FileType::Directory && !lies_beneath_root(path)) return Failure{Status::Stale};
  return cache_->insert(make_object(handle, std::move(path), type, closing()));
}

Outcome<Tree::Opened> Tree::adopt(UniqueFd path) {
  const auto stat_result = stat(path);
  if (!stat_result) return Failure{stat_result.error()};
  if (::makedev(stat_result->stx_dev_major, stat_result->stx_dev_minor) != device_)
    return Failure{Status::Access};
  const auto handle = handle_of(path, *stat_result);
  if (!handle) return Failure{handle.error()};
  Attributes attributes = attributes_of(*stat_result);
  ObjectRef object = *handle == root_->handle ? root_ : cache_->find(*handle);
  if (object == nullptr)
    object = cache_->insert(make_object(*handle, std::move(path), attributes.type, closing()));
  attributes.change = object->change.seen(attributes.change);
  return Opened{std::move(object), attributes};
}

bool Tree::lies_beneath_root(const UniqueFd& directory) const {
  const std::string root = path_of(root_->path);
  const std::string path = path_of(directory);
  if (root.empty()) return false;
  if (!path.empty()) return path == root || root == "/" || path.starts_with(root + "/");
  // The path is too long for the kernel to return it: climb from parent to parent.
  const auto top = stat(root_->path);
  int at = ::fcntl(directory.fd(), F_DUPFD_CLOEXEC, 0);
  std::uint64_t last = 0;
  while (top) {
    const UniqueFd here(at);
    const auto stat_result = here ? stat(here) : Outcome<struct statx>(Failure{Status::Io});
    if (!stat_result ||
        ::makedev(stat_result->stx_dev_major, stat_result->stx_dev_minor) != device_)
      return false;
    if (stat_result->stx_ino == top->stx_ino) return true;
    if (stat_result->stx_ino == last) return false;
    last = stat_result->stx_ino;
    at = ::openat(here.fd(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
  }
  return false;
}

std::optional<Status> Tree::directory_fault(const Object& object) const {
  if (object.type != FileType::Directory) return Status::NotDirectory;
  if (&object != root_.get() && !lies_beneath_root(object.path)) return Status::Stale;
  return std::nullopt;
}

Outcome<ObjectRef> Tree::resolve_directory(const Handle& handle) {
  auto directory = resolve(handle);
  if (!directory) return directory;
  if ((*directory)->type != FileType::Directory) return Failure{Status::NotDirectory};
  return directory;
}

Outcome<Tree::Opened> Tree::open_entry(const Object& directory, std::string_view name,
                                       std::uint64_t resolve) {
  const int fd = open_name(directory.path.fd(), std::string(name), resolve);
  if (fd < 0) return entry_error();
  return adopt(UniqueFd(fd));
}

Outcome<Tree::Opened> Tree::open_parent(const Object& directory) {
  const bool is_root = &directory == root_.get() || directory.handle == root_->handle;
  const int start = is_root ? root_->path.fd() : directory.path.fd();
  UniqueFd path(::openat(start, is_root ? "." : "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!path) return last_error();
  if (!lies_beneath_root(path)) return Failure{Status::Stale};
  return adopt(std::move(path));
}

bool Tree::leads_elsewhere(const Object& directory, std::string_view name, InodeKey object) const {
  const std::string terminated(name);
  struct statx found {};
  if (::statx(directory.path.fd(), terminated.c_str(), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
              STATX_INO | STATX_BTIME, &found) != 0)
    return errno == ENOENT;
  // What is mounted on it hides where it leads.
  const bool hidden = (found.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0 ||
                      ::makedev(found.stx_dev_major, found.stx_dev_minor) != device_;
  return !hidden && key_of(directory.path.fd(), terminated.c_str(), found) != object;
}

// A call that moved or removed the object after it was found there may have forgotten the name
// before it is recorded here. If a call brought it back before it is forgotten here, nothing is
// recorded.
void Tree::remember(const Object& directory, std::string_view name, const Handle& object) {
  if (table_ == nullptr || object == root_->handle) return;
  const InodeKey parent = *key_of_handle(directory.handle);
  const InodeKey child = *key_of_handle(object);
  if (table_->record(parent, name, child) == InodeTable::Recorded::Known) return;
  if (leads_elsewhere(directory, name, child)) {
    table_->forget(parent, name, child);
    if (!leads_elsewhere(directory, name, child)) (void)table_->record(parent, name, child);
  }
  sweep_now_and_then();
}

void Tree::forget(const Object& directory, std::string_view name, const Handle& object) {
  if (table_ == nullptr) return;
  table_->forget(*key_of_handle(directory.handle), name, *key_of_handle(object));
}

void Tree::drop_entry(const Object& object) {
  if (apart_by_ == TellsInodesApart::Table && table_ != nullptr && !stat(object.path))
    table_->note_gone(key_of_handle(object.handle)->inode);
  cache_->drop(object.handle);
}

}  // namespace stag::vfs::posix
