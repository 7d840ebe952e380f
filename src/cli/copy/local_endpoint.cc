// LocalEndpoint: files of this machine as one end of a copy. Blocking calls run on the loop's
// workers.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <utility>

#include "cli/copy/local_extras.h"
#include "cli/copy/local_temp_file.h"
#include "cli/support/local_file.h"

namespace stag::cli {
namespace {

using nfs::client::Error;

constexpr std::size_t kMembersAtOnce = 1000;

Failure<Error> trouble(std::string_view verb, const std::string& path, int error) {
  return Failure{Error::of_local(local_trouble(verb, path, error))};
}

nfs::client::Time time_of(const timespec& time) {
  return {time.tv_sec, static_cast<std::uint32_t>(time.tv_nsec)};
}

Kind kind_of(mode_t mode) {
  if (S_ISREG(mode)) return Kind::File;
  if (S_ISDIR(mode)) return Kind::Directory;
  return S_ISLNK(mode) ? Kind::Symlink : Kind::Other;
}

using nfs::client::FileType;
using nfs::client::Special;

Special special_of(const struct stat& info) {
  Special special;
  if (S_ISSOCK(info.st_mode)) special.type = FileType::Socket;
  if (!S_ISCHR(info.st_mode) && !S_ISBLK(info.st_mode)) return special;
  special.type = S_ISCHR(info.st_mode) ? FileType::CharacterDevice : FileType::BlockDevice;
  special.device = {major(info.st_rdev), minor(info.st_rdev)};
  return special;
}

mode_t mode_of(FileType type) {
  if (type == FileType::BlockDevice) return S_IFBLK;
  if (type == FileType::CharacterDevice) return S_IFCHR;
  return type == FileType::Socket ? S_IFSOCK : S_IFIFO;
}

std::string below(const std::string& directory, const std::string& name) {
  return directory.ends_with('/') ? directory + name : directory + "/" + name;
}

Outcome<std::optional<CopyObject>> look(const std::string& path, Follow follow) {
  struct stat info {};
  const int flags = follow == Follow::Yes ? 0 : AT_SYMLINK_NOFOLLOW;
  if (fstatat(AT_FDCWD, path.c_str(), &info, flags) != 0) {
    if (errno == ENOENT) return std::optional<CopyObject>();
    return trouble("look at", path, errno);
  }
  CopyObject object;
  object.path = path;
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
  return std::optional<CopyObject>(std::move(object));
}

// O_NONBLOCK: if it has become a FIFO meanwhile, open(2) must not block.
constexpr int kOpened = O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC;
// To open a device may do something to it, and a socket cannot be opened.
constexpr int kNamed = O_PATH | O_NOFOLLOW | O_CLOEXEC;

// Opens what is at `path`, which begins with the directory `top`. Below that no component may be a
// symbolic link: one that has come there would lead out of the destination.
net::UniqueFd open_below(const std::string& top, const std::string& path, int flags = kOpened) {
  constexpr int kStep = O_PATH | O_DIRECTORY | O_CLOEXEC;
  net::UniqueFd fd;
  errno = EXDEV;
  if (!path.starts_with(top)) return fd;
  fd = net::UniqueFd(::open(top.c_str(), kStep));
  if (!fd) return fd;
  std::string_view left = std::string_view(path).substr(top.size());
  for (;;) {
    left.remove_prefix(std::min(left.find_first_not_of('/'), left.size()));
    const std::string name(left.substr(0, left.find('/')));
    left.remove_prefix(name.size());
    const bool last = left.empty();
    const char* const next = name.empty() ? "." : name.c_str();
    fd = net::UniqueFd(::openat(fd.fd(), next, last ? flags : kStep | O_NOFOLLOW));
    if (!fd || last) return fd;
  }
}

Outcome<std::uint64_t> read_now(const std::string& path, std::uint64_t offset, MutableBytes to) {
  const net::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd) return trouble("read", path, errno);
  std::uint64_t done = 0;
  while (done < to.size()) {
    const ssize_t got =
        ::pread(fd.fd(), to.data() + done, to.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return trouble("read", path, errno);
    if (got == 0) break;
    done += static_cast<std::uint64_t>(got);
  }
  return done;
}

Failure<Error> not_made(const std::string& path, int error) {
  return trouble("make the special file", path, error);
}

// As CopyEndpoint::mknod().
Outcome<std::string> make_special(const std::string& path, const std::string& temporary,
                                  const Special& special, const Finish& finish) {
  const dev_t device = ::makedev(special.device.major, special.device.minor);
  if (::mknod(temporary.c_str(), mode_of(special.type) | 0600, device) != 0) {
    const int error = errno;
    const bool never = error == EPERM || error == EOPNOTSUPP || error == EINVAL;
    if (!never) return not_made(path, error);
    return local_trouble("make the special file", path, error);
  }
  const net::UniqueFd fd(::open(temporary.c_str(), kNamed));
  struct stat made {};
  Outcome<Ok> done{Ok{}};
  if (!fd || fstat(fd.fd(), &made) != 0) done = not_made(path, errno);
  // Whoever else may write to the directory might have put something in its place.
  else if ((made.st_mode & S_IFMT) != mode_of(special.type) || made.st_nlink != 1)
    done = not_made(path, EEXIST);
  else
    done = finish_local(fd.fd(), path, finish);
  if (done && ::rename(temporary.c_str(), path.c_str()) != 0) done = not_made(path, errno);
  if (done) return std::string();
  ::unlink(temporary.c_str());
  return Failure{done.error()};
}

class LocalDirIterator final : public DirIterator {
 public:
  LocalDirIterator(Run& run, std::string path) : run_(run), path_(std::move(path)) {}
  ~LocalDirIterator() override {
    if (stream_ != nullptr) closedir(stream_);
  }

  Task<Outcome<std::vector<Member>>> next() override {
    co_return co_await offloaded(run_.loop, [this] { return next_now(); });
  }

 private:
  Outcome<std::vector<Member>> next_now() {
    if (stream_ == nullptr) stream_ = opendir(path_.c_str());
    if (stream_ == nullptr) return trouble("list", path_, errno);
    std::vector<Member> members;
    while (members.size() < kMembersAtOnce) {
      errno = 0;
      const dirent* entry = readdir(stream_);
      if (entry == nullptr && errno != 0) return trouble("list", path_, errno);
      if (entry == nullptr) break;
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      const std::string path = below(path_, name);
      const Outcome<std::optional<CopyObject>> object = look(path, Follow::No);
      if (!object) members.push_back({name, CopyObject{.path = path}, object.error()});
      // Otherwise the entry was removed meanwhile.
      else if (*object)
        members.push_back({name, **object});
    }
    return members;
  }

  Run& run_;
  const std::string path_;
  DIR* stream_ = nullptr;
};

class LocalEndpoint final : public CopyEndpoint {
 public:
  LocalEndpoint(Run& run, Progress& progress) : run_(run), progress_(progress) {}

  Task<Outcome<std::optional<CopyObject>>> find(std::string path, Follow follow) override {
    Outcome<std::optional<CopyObject>> found =
        co_await offloaded(run_.loop, [&] { return look(path, follow); });
    const bool top = follow == Follow::Yes && found && *found;
    if (top && (*found)->kind == Kind::Directory) top_ = path;
    co_return found;
  }
  Task<Outcome<std::optional<CopyObject>>> find_in(CopyObject directory,
                                                   std::string name) override {
    co_return co_await find(below(directory.path, name), Follow::No);
  }
  std::string shown_path(const std::string& path) const override { return path; }

  std::unique_ptr<DirIterator> members(const CopyObject& directory) override {
    return std::make_unique<LocalDirIterator>(run_, directory.path);
  }
  Task<Outcome<std::string>> readlink(CopyObject symlink) override {
    co_return co_await offloaded(run_.loop, [&]() -> Outcome<std::string> {
      std::string target(PATH_MAX, '\0');
      const ssize_t length = ::readlink(symlink.path.c_str(), target.data(), target.size());
      if (length < 0) return trouble("read the symbolic link", symlink.path, errno);
      target.resize(static_cast<std::size_t>(length));
      return target;
    });
  }
  Task<Outcome<Extras>> extras(CopyObject object, ExtraKinds kinds) override {
    Outcome<Extras> extras =
        co_await offloaded(run_.loop, [&] { return extras_of_local(object.path, kinds); });
    if (!extras) co_return extras;
    extras->of_directory = object.kind == Kind::Directory;
    extras->mode = object.mode;
    co_return extras;
  }
  Task<Outcome<std::uint64_t>> feed(CopyObject file, TempFile& temp_file,
                                    std::uint64_t from) override {
    Outcome<std::unique_ptr<LocalFile>> opened =
        co_await offloaded(run_.loop, [&] { return LocalFile::open(run_.loop, file.path); });
    if (!opened) co_return Failure{opened.error()};
    LocalFile& source = **opened;
    const NextHole next_hole = [&source](std::uint64_t at) { return source.next_hole(at); };
    const Outcome<Ok> punched = co_await punch_holes(next_hole, temp_file, from);
    if (!punched) co_return Failure{punched.error()};
    const Outcome<Ok> filled = co_await temp_file.fill(source, from);
    if (!filled) co_return Failure{filled.error()};
    co_return file.size;
  }
  Task<Outcome<std::uint64_t>> read_at(CopyObject file, std::uint64_t offset,
                                       MutableBytes to) override {
    co_return co_await offloaded(run_.loop, [&] { return read_now(file.path, offset, to); });
  }

  Task<Outcome<CopyObject>> mkdir(CopyObject directory, std::string name,
                                  std::uint32_t mode) override {
    co_return co_await offloaded(run_.loop, [&]() -> Outcome<CopyObject> {
      const std::string path = below(directory.path, name);
      if (::mkdir(path.c_str(), mode) != 0) return trouble("make the directory", path, errno);
      const Outcome<std::optional<CopyObject>> made = look(path, Follow::No);
      if (!made) return Failure{made.error()};
      if (!*made) return trouble("make the directory", path, ENOENT);
      return **made;
    });
  }
  Task<Outcome<Ok>> symlink(CopyObject directory, std::string name, std::string target,
                            Finish finish) override {
    co_return co_await offloaded(run_.loop, [&]() -> Outcome<Ok> {
      const std::string path = below(directory.path, name);
      const std::string temporary = below(directory.path, temporary_name());
      if (::symlink(target.c_str(), temporary.c_str()) != 0)
        return trouble("make the symbolic link", path, errno);
      finish_symlink(temporary, finish);
      if (::rename(temporary.c_str(), path.c_str()) == 0) return Ok{};
      const int error = errno;
      ::unlink(temporary.c_str());
      return trouble("make the symbolic link", path, error);
    });
  }
  Task<Outcome<std::string>> mknod(CopyObject directory, std::string name, Special special,
                                   Finish finish) override {
    co_return co_await offloaded(run_.loop, [&] {
      return make_special(below(directory.path, name), below(directory.path, temporary_name()),
                          special, finish);
    });
  }
  Task<Outcome<std::unique_ptr<TempFile>>> temp_file(CopyObject directory, std::string name,
                                                     TempFilePlan plan) override {
    co_return co_await offloaded(run_.loop, [&] {
      return open_local_temp_file(run_, progress_, below(directory.path, name), std::move(plan));
    });
  }
  Task<Outcome<std::uint64_t>> unordered_bytes() override { co_return std::uint64_t{0}; }
  Task<Outcome<Ok>> link(CopyObject file, CopyObject directory, std::string name) override {
    co_return co_await offloaded(run_.loop, [&]() -> Outcome<Ok> {
      const std::string path = below(directory.path, name);
      const std::string temporary = below(directory.path, temporary_name());
      if (::link(file.path.c_str(), temporary.c_str()) != 0) return trouble("link", path, errno);
      const int error = ::rename(temporary.c_str(), path.c_str()) == 0 ? 0 : errno;
      // rename(2) does nothing where both names are of one file already.
      ::unlink(temporary.c_str());
      if (error != 0) return trouble("link", path, error);
      return Ok{};
    });
  }
  Task<Outcome<Ok>> adopt(CopyObject directory, Extras extras) override {
    // Another find() may change it while a worker reads it.
    const std::string top = top_;
    co_return co_await offloaded(run_.loop, [&]() -> Outcome<Ok> {
      const net::UniqueFd fd = open_below(top, directory.path);
      if (!fd) return trouble("open", directory.path, errno);
      return adopt_local(fd.fd(), directory.path, extras);
    });
  }
  Task<Outcome<Ok>> remove(CopyObject directory, Member member) override {
    co_return co_await offloaded(run_.loop, [&]() -> Outcome<Ok> {
      const std::string path = below(directory.path, member.name);
      const int flags = member.object.kind == Kind::Directory ? AT_REMOVEDIR : 0;
      if (::unlinkat(AT_FDCWD, path.c_str(), flags) != 0) return trouble("remove", path, errno);
      return Ok{};
    });
  }
  Task<Outcome<Ok>> finish(CopyObject object, Finish finish) override {
    // Another find() may change it while a worker reads it.
    const std::string top = top_;
    co_return co_await offloaded(run_.loop, [&]() -> Outcome<Ok> {
      const net::UniqueFd fd =
          open_below(top, object.path, object.kind == Kind::Other ? kNamed : kOpened);
      if (!fd) return trouble("open", object.path, errno);
      return finish_local(fd.fd(), object.path, finish);
    });
  }

 private:
  Run& run_;
  Progress& progress_;
  std::string top_;  // the last directory that was found as the user named it, links followed
};

}  // namespace

std::unique_ptr<CopyEndpoint> local_endpoint(Run& run, Progress& progress) {
  return std::make_unique<LocalEndpoint>(run, progress);
}

}  // namespace stag::cli
