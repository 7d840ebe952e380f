#include "cli/copy/local_tree.h"

#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "cli/support/local_file.h"

namespace stag::cli {
namespace {

using nfs::client::Error;
using nfs::client::FileType;
using nfs::client::Special;

constexpr int kStep = kToName | O_DIRECTORY;
// The kernel takes paths below PATH_MAX.
constexpr std::size_t kMostAtOnce = PATH_MAX - 1;

// Those that concern all further files; others are told by their sentence alone.
nfs::client::Status status_of(int error) {
  using nfs::client::Status;
  if (error == ENOSPC) return Status::NoSpace;
  if (error == EDQUOT) return Status::QuotaExceeded;
  return error == EROFS ? Status::ReadOnly : Status::Ok;
}

Kind kind_of(mode_t mode) {
  if (S_ISREG(mode)) return Kind::File;
  if (S_ISDIR(mode)) return Kind::Directory;
  return S_ISLNK(mode) ? Kind::Symlink : Kind::Other;
}

Special special_of(const struct stat& info) {
  Special special;
  if (S_ISSOCK(info.st_mode)) special.type = FileType::Socket;
  if (!S_ISCHR(info.st_mode) && !S_ISBLK(info.st_mode)) return special;
  special.type = S_ISCHR(info.st_mode) ? FileType::CharacterDevice : FileType::BlockDevice;
  special.device = {major(info.st_rdev), minor(info.st_rdev)};
  return special;
}

CopyObject object_of(const struct stat& info, std::string path, std::size_t named) {
  CopyObject object;
  object.path = std::move(path);
  object.named = static_cast<std::uint32_t>(named);
  object.kind = kind_of(info.st_mode);
  object.mode = info.st_mode & 07777;
  object.links = static_cast<std::uint32_t>(info.st_nlink);
  object.owner = {info.st_uid, info.st_gid};
  object.size = static_cast<std::uint64_t>(info.st_size);
  object.used = static_cast<std::uint64_t>(info.st_blocks) * 512;
  object.accessed = time_of(info.st_atim);
  object.modified = time_of(info.st_mtim);
  object.changed = time_of(info.st_ctim);
  object.file_id = info.st_ino;
  object.fsid = info.st_dev;
  if (object.kind == Kind::Other) object.special = special_of(info);
  return object;
}

bool is(const struct stat& info, const CopyObject& object) {
  return info.st_dev == object.fsid && info.st_ino == object.file_id &&
         kind_of(info.st_mode) == object.kind;
}

// What a symbolic link, or a file in the place of a directory, fails with.
int changed(int error) {
  return error == ELOOP || error == ENOTDIR ? ESTALE : error;
}

SystemResult<UniqueFd> opened(int fd) {
  if (fd < 0) return Failure{errno};
  return UniqueFd(fd);
}

SystemResult<struct stat> stat_of(const UniqueFd& fd) {
  struct stat info {};
  if (::fstat(fd.fd(), &info) != 0) return Failure{errno};
  return info;
}

// Takes as many names off `path` as fit into `most` bytes, and one at least.
std::string take_names(std::string_view& path, std::size_t most) {
  std::size_t end = path.size();
  if (end > most) {
    end = path.rfind('/', most);
    if (end == 0 || end == std::string_view::npos) end = path.find('/', most);
    end = std::min(end, path.size());
  }
  std::string names(path.substr(0, end));
  path.remove_prefix(end);
  path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
  return names;
}

// Follows symbolic links.
SystemResult<UniqueFd> open_named(std::string_view path, int flags) {
  UniqueFd fd;
  do {
    const int from = fd ? fd.fd() : AT_FDCWD;
    const std::string names = take_names(path, kMostAtOnce);
    SystemResult<UniqueFd> next =
        opened(::openat(from, names.c_str(), path.empty() ? flags : kStep));
    if (!next) return next;
    fd = *std::move(next);
  } while (!path.empty());
  return fd;
}

int openat2_beneath(int directory, const char* path, int flags) {
  struct open_how how {};
  how.flags = static_cast<std::uint64_t>(flags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  return static_cast<int>(::syscall(SYS_openat2, directory, path, &how, sizeof how));
}

}  // namespace

Failure<Error> local_failure(std::string_view verb, const std::string& path, int error) {
  if (error == EWOULDBLOCK)
    return Failure{Error::of_local(
        fmt::format("cannot {} '{}': another program has a lease of it and does not give it back",
                    verb, path))};
  if (error != ESTALE) {
    Error failure = Error::of_local(local_trouble(verb, path, error));
    failure.status = status_of(error);
    return Failure{std::move(failure)};
  }
  return Failure{Error::of_local(fmt::format("'{}' has changed meanwhile; copy it again", path))};
}

SystemResult<std::optional<CopyObject>> LocalTree::find(const std::string& path, Follow follow) {
  const int flags = kToName | (follow == Follow::Yes ? 0 : O_NOFOLLOW);
  SystemResult<UniqueFd> fd = open_named(path, flags);
  if (!fd && fd.error() == ENOENT) return std::optional<CopyObject>();
  if (!fd) return Failure{fd.error()};
  SystemResult<struct stat> info = stat_of(*fd);
  if (!info) return Failure{info.error()};
  if (!S_ISDIR(info->st_mode)) return std::optional(object_of(*info, path, path.size()));
  // With O_DIRECTORY an automount is mounted, as it is when the directory is listed.
  fd = open_named(path, flags | O_DIRECTORY);
  if (!fd) return Failure{changed(fd.error())};
  info = stat_of(*fd);
  if (!info) return Failure{info.error()};
  keep(path, *info, *std::move(fd));
  return std::optional(object_of(*info, path, path.size()));
}

SystemResult<OpenDirectory> LocalTree::directory(const CopyObject& directory) {
  OpenDirectory known = kept(directory.path, &directory);
  if (known) return known;
  SystemResult<UniqueFd> fd = open(directory, kStep);
  if (!fd) return Failure{fd.error()};
  const SystemResult<struct stat> info = stat_of(*fd);
  if (!info) return Failure{info.error()};
  return keep(directory.path, *info, *std::move(fd));
}

SystemResult<LocalPlace> LocalTree::place(const CopyObject& object) {
  const std::string_view path = object.path;
  const std::size_t slash = path.rfind('/');
  const bool at_top = slash == std::string_view::npos || slash < object.named;
  const std::size_t end = at_top ? object.named : slash;
  SystemResult<OpenDirectory> directory = directory_at(path.substr(0, end), object.named);
  if (!directory) return Failure{directory.error()};
  return LocalPlace{*std::move(directory), std::string(path.substr(at_top ? end : slash + 1))};
}

SystemResult<UniqueFd> LocalTree::open(const CopyObject& object, int flags) {
  SystemResult<UniqueFd> fd = open_unchecked(object, flags);
  if (!fd) return Failure{changed(fd.error())};
  const SystemResult<struct stat> info = stat_of(*fd);
  if (!info) return Failure{info.error()};
  if (!is(*info, object)) return Failure{ESTALE};
  return fd;
}

SystemResult<UniqueFd> LocalTree::open_to_list(const CopyObject& directory) {
  SystemResult<UniqueFd> fd = open(directory, kToRead | O_DIRECTORY);
  if (!fd) return fd;
  SystemResult<UniqueFd> second = opened(::fcntl(fd->fd(), F_DUPFD_CLOEXEC, 0));
  if (!second) return second;
  const SystemResult<struct stat> info = stat_of(*fd);
  if (!info) return Failure{info.error()};
  keep(directory.path, *info, *std::move(second));
  return fd;
}

SystemResult<UniqueFd> LocalTree::open_unchecked(const CopyObject& object, int flags) {
  if (object.named == object.path.size())
    return open_named(object.path, object.kind == Kind::Symlink ? flags | O_NOFOLLOW : flags);
  if (object.kind == Kind::Directory)
    return open_at(object.path, object.named, flags | O_DIRECTORY);
  const SystemResult<LocalPlace> found = place(object);
  if (!found) return Failure{found.error()};
  return opened(::openat(found->directory->fd(), found->name.c_str(), flags | O_NOFOLLOW));
}

SystemResult<UniqueFd> LocalTree::open_at(std::string_view path, std::size_t named, int flags) {
  if (path.size() <= named) return open_named(path, flags);
  const SystemResult<OpenDirectory> top = directory_at(path.substr(0, named), named);
  if (!top) return Failure{top.error()};
  path.remove_prefix(std::min(path.find_first_not_of('/', named), path.size()));
  return open_beneath((*top)->fd(), path, flags);
}

SystemResult<OpenDirectory> LocalTree::directory_at(std::string_view path, std::size_t named) {
  OpenDirectory known = kept(path, nullptr);
  if (known) return known;
  SystemResult<UniqueFd> fd = open_at(path, named, kStep);
  if (!fd) return Failure{fd.error()};
  const SystemResult<struct stat> info = stat_of(*fd);
  if (!info) return Failure{info.error()};
  return keep(path, *info, *std::move(fd));
}

SystemResult<UniqueFd> LocalTree::open_beneath(int directory, std::string_view path, int flags) {
  UniqueFd fd;
  do {
    const int from = fd ? fd.fd() : directory;
    const bool stepwise = stepwise_;
    std::string_view left = path;
    const std::string names = take_names(left, stepwise ? 1 : kMostAtOnce);
    const int wanted = (left.empty() ? flags : kStep) | O_NOFOLLOW;
    SystemResult<UniqueFd> next = opened(stepwise ? ::openat(from, names.c_str(), wanted)
                                                  : openat2_beneath(from, names.c_str(), wanted));
    // By an old kernel, or by the filter of a container.
    const bool refused = !next && (next.error() == ENOSYS || next.error() == EPERM);
    if (refused && !stepwise) {
      stepwise_ = true;
      continue;
    }
    if (!next) return next;
    fd = *std::move(next);
    path = left;
  } while (!path.empty());
  return fd;
}

OpenDirectory LocalTree::kept(std::string_view path, const CopyObject* object) {
  const std::lock_guard lock(mutex_);
  for (Kept& each : kept_) {
    if (!each.directory || each.path != path) continue;
    if (object && (each.fsid != object->fsid || each.file_id != object->file_id)) continue;
    each.used = ++uses_;
    return each.directory;
  }
  return nullptr;
}

OpenDirectory LocalTree::keep(std::string_view path, const struct stat& info, UniqueFd fd) {
  OpenDirectory directory = std::make_shared<const UniqueFd>(std::move(fd));
  // Has, in the end, what is closed after the lock.
  Kept one{std::string(path), info.st_dev, info.st_ino, directory, 0};
  const std::lock_guard lock(mutex_);
  auto at = std::ranges::find(kept_, path, &Kept::path);
  if (at == kept_.end()) at = std::ranges::min_element(kept_, {}, &Kept::used);
  one.used = ++uses_;
  std::swap(*at, one);
  return directory;
}

SystemResult<std::optional<CopyObject>> look_at(int directory, const CopyObject& parent,
                                                const std::string& name) {
  struct stat info {};
  if (::fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0)
    return std::optional(object_of(info, path_in(parent, name), parent.named));
  if (errno == ENOENT) return std::optional<CopyObject>();
  return Failure{errno};
}

std::string path_in(const CopyObject& directory, const std::string& name) {
  return directory.path + (directory.path.ends_with('/') ? "" : "/") + name;
}

std::string name_of_open(int fd) {
  return "/proc/self/fd/" + std::to_string(fd);
}

}  // namespace stag::cli
