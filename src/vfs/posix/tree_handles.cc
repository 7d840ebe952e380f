// Handles, and the objects that they lead to.
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include <climits>
#include <cstring>

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
constexpr unsigned kMaxDepth = 512;

struct KernelHandle {
  // The system's struct ends in bytes of its own choosing; it is laid over this memory.
  alignas(struct file_handle) std::byte memory[sizeof(struct file_handle) + kKernelBytes];
  struct file_handle* get() {
    return reinterpret_cast<struct file_handle*>(memory);
  }
};

InodeKey key_of(const struct statx& stat) {
  const bool born = (stat.stx_mask & STATX_BTIME) != 0;
  const auto seconds = static_cast<std::uint64_t>(stat.stx_btime.tv_sec);
  return {stat.stx_ino, born ? seconds * 1'000'000'000 + stat.stx_btime.tv_nsec : 0};
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

bool name_by_kernel(int path, KernelHandle& handle) {
  int mount = 0;
  handle.get()->handle_bytes = kKernelBytes;
  if (::name_to_handle_at(path, "", handle.get(), &mount, AT_EMPTY_PATH) != 0) return false;
  return handle.get()->handle_type >= 0 && handle.get()->handle_type <= 0xff;
}

std::string path_of(const Descriptor& descriptor) {
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

// A mount point is a place where the export ends.
Failure<Status> entry_error() {
  return Failure{errno == EXDEV ? Status::Access : status_of(errno)};
}

}  // namespace

bool Tree::kernel_handles_work() const {
  KernelHandle handle;
  const auto reader = root_->open_reader();
  if (!reader || !name_by_kernel(root_->path.number(), handle)) return false;
  return static_cast<bool>(
      Descriptor(::open_by_handle_at((*reader)->number(), handle.get(), O_PATH | O_CLOEXEC)));
}

Outcome<Handle> Tree::handle_of(const Descriptor& path, const struct statx& stat) const {
  if (table_ != nullptr) return handle_of_key(key_of(stat));
  KernelHandle handle;
  if (!name_by_kernel(path.number(), handle)) return last_error();
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
  const InodeKey key = key_of(stat);
  store_be(&numbers[0], file_system_id_ == device_ ? std::uint64_t{0} : file_system_id_);
  store_be(&numbers[8], key.inode);
  store_be(&numbers[16], key.born);
  const auto text = [](Bytes bytes) {
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  return text(numbers) + text(root.bytes());
}

std::uint64_t Tree::lasting_id(const struct statx& root) const {
  if (file_system_id_ != device_) return file_system_id_;
  const std::uint64_t born = key_of(root).born;
  return born != 0 ? born : device_;
}

Outcome<Descriptor> Tree::open_by_kernel(const Handle& handle) {
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
      return ::open_by_handle_at((*reader)->number(), kernel.get(),
                                 O_PATH | O_NOFOLLOW | O_CLOEXEC);
    });
    if (fd >= 0) return Descriptor(fd);
    if (!first || (errno != EMFILE && errno != ENFILE)) break;
    ObjectCache::drop_all();
  }
  if (errno == EINVAL || errno == EOVERFLOW) return Failure{Status::BadHandle};
  if (errno == ENOENT) return Failure{Status::Stale};
  return last_error();
}

// Follows the names the object was seen under, from the root down, and believes the one that still
// leads to it.
Outcome<Descriptor> Tree::open_by_table(InodeKey key, unsigned depth) {
  if (depth > kMaxDepth) return Failure{Status::Stale};
  for (const NameOfInode& seen : table_->names_of(key)) {
    const auto directory = resolve(handle_of_key(seen.directory), depth + 1);
    if (!directory) continue;
    Descriptor path(open_relative((*directory)->path.number(), seen.name.c_str(), 0));
    if (!path) continue;
    const auto stat_result = stat(path);
    if (stat_result && key_of(*stat_result) == key) return path;
  }
  return Failure{Status::Stale};
}

Outcome<ObjectRef> Tree::resolve(const Handle& handle, unsigned depth) {
  if (handle == root_->handle) return root_;
  if (ObjectRef cached = cache_->find(handle)) return cached;
  Outcome<Descriptor> path = Failure{Status::BadHandle};
  if (table_ == nullptr)
    path = open_by_kernel(handle);
  else if (const auto key = key_of_handle(handle))
    path = open_by_table(*key, depth);
  if (!path) return Failure{path.error()};
  const auto stat_result = stat(*path);
  if (!stat_result) return Failure{stat_result.error()};
  if (::makedev(stat_result->stx_dev_major, stat_result->stx_dev_minor) != device_)
    return Failure{Status::Stale};
  const FileType type = attributes_of(*stat_result).type;
  if (type == FileType::Directory && !lies_beneath_root(*path)) return Failure{Status::Stale};
  return cache_->insert(std::make_shared<Object>(handle, *std::move(path), type));
}

Outcome<Tree::Opened> Tree::adopt(Descriptor path) {
  const auto stat_result = stat(path);
  if (!stat_result) return Failure{stat_result.error()};
  if (::makedev(stat_result->stx_dev_major, stat_result->stx_dev_minor) != device_)
    return Failure{Status::Access};
  const auto handle = handle_of(path, *stat_result);
  if (!handle) return Failure{handle.error()};
  Attributes attributes = attributes_of(*stat_result);
  ObjectRef object = *handle == root_->handle ? root_ : cache_->find(*handle);
  if (object == nullptr)
    object = cache_->insert(std::make_shared<Object>(*handle, std::move(path), attributes.type));
  attributes.change = object->change.seen(attributes.change);
  return Opened{std::move(object), attributes};
}

bool Tree::lies_beneath_root(const Descriptor& directory) const {
  const std::string root = path_of(root_->path);
  const std::string path = path_of(directory);
  if (root.empty()) return false;
  if (!path.empty()) return path == root || root == "/" || path.starts_with(root + "/");
  // The path is too long for the kernel to return it: climb from parent to parent.
  const auto top = stat(root_->path);
  int at = ::fcntl(directory.number(), F_DUPFD_CLOEXEC, 0);
  InodeKey last;
  while (top) {
    const Descriptor here(at);
    const auto stat_result = here ? stat(here) : Outcome<struct statx>(Failure{Status::Io});
    if (!stat_result ||
        ::makedev(stat_result->stx_dev_major, stat_result->stx_dev_minor) != device_)
      return false;
    if (key_of(*stat_result) == key_of(*top)) return true;
    if (key_of(*stat_result) == last) return false;
    last = key_of(*stat_result);
    at = ::openat(here.number(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
  }
  return false;
}

std::optional<Status> Tree::directory_fault(const Object& object) const {
  if (object.type != FileType::Directory) return Status::NotDirectory;
  // The directory may have been moved out of the tree since it was opened.
  if (&object != root_.get() && !lies_beneath_root(object.path)) return Status::Stale;
  return std::nullopt;
}

Outcome<ObjectRef> Tree::resolve_directory(const Handle& handle) {
  auto directory = resolve(handle);
  if (!directory) return directory;
  if (const auto fault = directory_fault(**directory)) return Failure{*fault};
  return directory;
}

Outcome<Tree::Opened> Tree::open_entry(const Object& directory, std::string_view name,
                                       std::uint64_t resolve) {
  const std::string terminated(name);
  int fd = open_relative(directory.path.number(), terminated.c_str(), resolve);
  if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
    ObjectCache::drop_all();
    fd = open_relative(directory.path.number(), terminated.c_str(), resolve);
  }
  if (fd < 0) return entry_error();
  return adopt(Descriptor(fd));
}

Outcome<Tree::Opened> Tree::open_parent(const Object& directory) {
  const bool is_root = &directory == root_.get() || directory.handle == root_->handle;
  const int start = is_root ? root_->path.number() : directory.path.number();
  Descriptor path(::openat(start, is_root ? "." : "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!path) return last_error();
  if (!lies_beneath_root(path)) return Failure{Status::Stale};
  return adopt(std::move(path));
}

std::optional<Status> Tree::remember(const Object& directory, std::string_view name,
                                     const Handle& object) {
  if (table_ == nullptr || object == root_->handle) return std::nullopt;
  if (!table_->record(*key_of_handle(directory.handle), name, *key_of_handle(object)))
    return Status::Io;
  return std::nullopt;
}

void Tree::forget(const Object& directory, std::string_view name) {
  if (table_ != nullptr) table_->forget(*key_of_handle(directory.handle), name);
}

}  // namespace stag::vfs::posix
