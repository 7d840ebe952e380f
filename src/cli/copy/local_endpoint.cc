// LocalEndpoint: files of this machine as one end of a copy, which it reaches by a LocalTree.
// Blocking calls run on the loop's workers.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <utility>

#include "cli/copy/local_extras.h"
#include "cli/copy/local_temp_file.h"
#include "cli/copy/local_tree.h"
#include "cli/support/local_file.h"

namespace stag::cli {
namespace {

using nfs::client::Error;
using nfs::client::FileType;
using nfs::client::Special;

constexpr std::size_t kMembersAtOnce = 1000;

// As long as the kernel leaves a lease to its holder, and some more
// (/proc/sys/fs/lease-break-time).
constexpr Duration kLeasePatience = std::chrono::seconds(120);
constexpr Duration kLeaseInterval = std::chrono::milliseconds(50);

mode_t mode_of(FileType type) {
  if (type == FileType::BlockDevice) return S_IFBLK;
  if (type == FileType::CharacterDevice) return S_IFCHR;
  return type == FileType::Socket ? S_IFSOCK : S_IFIFO;
}

Outcome<std::uint64_t> read_now(int fd, const CopyObject& file, std::uint64_t offset,
                                MutableBytes to) {
  std::uint64_t done = 0;
  while (done < to.size()) {
    const ssize_t got =
        ::pread(fd, to.data() + done, to.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return local_failure("read", file.path, errno);
    if (got == 0) break;
    done += static_cast<std::uint64_t>(got);
  }
  return done;
}

Failure<Error> not_made(const std::string& path, int error) {
  return local_failure("make the special file", path, error);
}

// As CopyEndpoint::mknod(), in the open `directory`. `path` is for messages.
Outcome<std::string> make_special(int directory, const std::string& name, const std::string& path,
                                  const Special& special, const Finish& finish) {
  const std::string temporary = temporary_name();
  const dev_t device = ::makedev(special.device.major, special.device.minor);
  if (::mknodat(directory, temporary.c_str(), mode_of(special.type) | 0600, device) != 0) {
    const int error = errno;
    const bool never = error == EPERM || error == EOPNOTSUPP || error == EINVAL;
    if (!never) return not_made(path, error);
    return local_trouble("make the special file", path, error);
  }
  const UniqueFd fd(::openat(directory, temporary.c_str(), kToName | O_NOFOLLOW));
  struct stat made {};
  Outcome<Ok> done{Ok{}};
  if (!fd || fstat(fd.fd(), &made) != 0) done = not_made(path, errno);
  // Another user who may write to the directory might have put something in its place.
  else if ((made.st_mode & S_IFMT) != mode_of(special.type) || made.st_nlink != 1)
    done = not_made(path, EEXIST);
  else
    done = finish_local(fd.fd(), path, finish);
  if (done && ::renameat(directory, temporary.c_str(), directory, name.c_str()) != 0)
    done = not_made(path, errno);
  if (done) return std::string();
  ::unlinkat(directory, temporary.c_str(), 0);
  return Failure{done.error()};
}

// As CopyEndpoint::link(), from `file` to `name` in the open `directory`.
SystemResult<Ok> link_at(LocalTree& tree, const CopyObject& file, int directory,
                         const CopyObject& parent, const std::string& name) {
  const SystemResult<LocalPlace> from = tree.place(file);
  if (!from) return Failure{from.error()};
  const std::string temporary = temporary_name();
  if (::linkat(from->directory->fd(), from->name.c_str(), directory, temporary.c_str(), 0) != 0)
    return Failure{errno};
  const SystemResult<std::optional<CopyObject>> made = look_at(directory, parent, temporary);
  int error = made ? 0 : made.error();
  // What has come to the place of the file is not what was copied.
  if (made && !(*made && (*made)->fsid == file.fsid && (*made)->file_id == file.file_id))
    error = ESTALE;
  if (error == 0 && ::renameat(directory, temporary.c_str(), directory, name.c_str()) != 0)
    error = errno;
  // rename(2) does nothing where both names are of one file already.
  ::unlinkat(directory, temporary.c_str(), 0);
  if (error != 0) return Failure{error};
  return Ok{};
}

// Gives `finish` to a symbolic link that was just made as `name`.
void finish_new_symlink(int directory, const std::string& name, const Finish& finish) {
  const UniqueFd fd(::openat(directory, name.c_str(), kToName | O_NOFOLLOW));
  struct stat made {};
  // Another user who may write to the directory might have put something in its place.
  const bool own = fd && fstat(fd.fd(), &made) == 0 && S_ISLNK(made.st_mode) && made.st_nlink <= 1;
  if (own) finish_local_symlink(fd.fd(), finish);
}

class LocalDirIterator final : public DirIterator {
 public:
  LocalDirIterator(Run& run, LocalTree& tree, CopyObject directory)
      : run_(run), tree_(tree), directory_(std::move(directory)) {}
  ~LocalDirIterator() override {
    if (stream_ != nullptr) closedir(stream_);
  }

  Task<Outcome<std::vector<Member>>> next() override {
    co_return co_await offloaded(run_.loop, [this] { return next_now(); });
  }

 private:
  Outcome<std::vector<Member>> next_now() {
    const int error = stream_ == nullptr ? open_now() : 0;
    if (error != 0) return local_failure("list", directory_.path, error);
    std::vector<Member> members;
    while (members.size() < kMembersAtOnce) {
      errno = 0;
      const dirent* entry = readdir(stream_);
      if (entry == nullptr && errno != 0) return local_failure("list", directory_.path, errno);
      if (entry == nullptr) break;
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      const auto object = look_at(dirfd(stream_), directory_, name);
      if (!object) members.push_back(unknown(name, object.error()));
      // Otherwise the entry was removed meanwhile.
      else if (*object)
        members.push_back({name, **object});
    }
    return members;
  }
  // The number of the error, or zero.
  int open_now() {
    SystemResult<UniqueFd> fd = tree_.open_to_list(directory_);
    if (!fd) return fd.error();
    stream_ = fdopendir(fd->fd());
    if (stream_ == nullptr) return errno;
    fd->release();
    return 0;
  }
  Member unknown(const std::string& name, int error) const {
    const std::string path = path_in(directory_, name);
    return {name, CopyObject{.path = path}, local_failure("look at", path, error).error};
  }

  Run& run_;
  LocalTree& tree_;
  const CopyObject directory_;
  DIR* stream_ = nullptr;
};

class LocalEndpoint final : public CopyEndpoint {
 public:
  LocalEndpoint(Run& run, Progress& progress) : run_(run), progress_(progress) {}

  Task<Outcome<std::optional<CopyObject>>> find(std::string path, Follow follow) override {
    co_return co_await offloaded(run_.loop,
                                 [&] { return looked_at(path, tree_.find(path, follow)); });
  }
  Task<Outcome<std::optional<CopyObject>>> find_in(CopyObject directory,
                                                   std::string name) override {
    co_return co_await offloaded(run_.loop, [&] {
      const std::string path = path_in(directory, name);
      const SystemResult<OpenDirectory> in = tree_.directory(directory);
      // Nothing is in a directory that a dry run has not made.
      if (!in && in.error() == ENOENT) return looked_at(path, std::optional<CopyObject>());
      if (!in) return looked_at(directory.path, Failure{in.error()});
      return looked_at(path, look_at((*in)->fd(), directory, name));
    });
  }
  std::string shown_path(const std::string& path) const override { return path; }
  bool is_superuser() const override { return geteuid() == 0; }

  std::unique_ptr<DirIterator> members(const CopyObject& directory) override {
    return std::make_unique<LocalDirIterator>(run_, tree_, directory);
  }
  Task<Outcome<std::string>> readlink(CopyObject symlink) override {
    co_return co_await offloaded(run_.loop, [&]() -> Outcome<std::string> {
      constexpr std::string_view kVerb = "read the symbolic link";
      const SystemResult<UniqueFd> fd = tree_.open(symlink, kToName);
      if (!fd) return local_failure(kVerb, symlink.path, fd.error());
      std::string target(PATH_MAX, '\0');
      const ssize_t length = ::readlinkat(fd->fd(), "", target.data(), target.size());
      if (length < 0) return local_failure(kVerb, symlink.path, errno);
      target.resize(static_cast<std::size_t>(length));
      return target;
    });
  }
  Task<Outcome<Extras>> extras(CopyObject object, ExtraKinds kinds) override {
    Outcome<Extras> extras = co_await offloaded(run_.loop, [&]() -> Outcome<Extras> {
      const bool data = object.kind == Kind::File || object.kind == Kind::Directory;
      SystemResult<UniqueFd> fd = tree_.open(object, data ? kToRead : kToName);
      // What may not be read, or not before a lease of it ends, can be asked for them all the same.
      if (!fd && (fd.error() == EACCES || fd.error() == EWOULDBLOCK))
        fd = tree_.open(object, kToName);
      if (!fd) return local_failure("open", object.path, fd.error());
      return extras_of_local(fd->fd(), object.path, kinds);
    });
    if (!extras) co_return extras;
    extras->of_directory = object.kind == Kind::Directory;
    co_return extras;
  }
  Task<Outcome<std::uint64_t>> feed(CopyObject file, TempFile& temp_file,
                                    std::uint64_t from) override {
    SystemResult<UniqueFd> fd = co_await when_free([&] { return tree_.open(file, kToRead); });
    if (!fd) co_return local_failure("read", file.path, fd.error());
    LocalFile source(run_.loop, file.path, *std::move(fd));
    const NextHole next_hole = [&source](std::uint64_t at) { return source.next_hole(at); };
    const Outcome<Ok> punched = co_await punch_holes(next_hole, temp_file, from);
    if (!punched) co_return Failure{punched.error()};
    const Outcome<Ok> filled = co_await temp_file.fill(source, from);
    if (!filled) co_return Failure{filled.error()};
    co_return file.size;
  }
  Task<Outcome<std::uint64_t>> read_at(CopyObject file, std::uint64_t offset,
                                       MutableBytes to) override {
    const SystemResult<UniqueFd> fd = co_await when_free([&] { return tree_.open(file, kToRead); });
    if (!fd) co_return local_failure("read", file.path, fd.error());
    co_return co_await offloaded(run_.loop, [&] { return read_now(fd->fd(), file, offset, to); });
  }

  Task<Outcome<CopyObject>> mkdir(CopyObject directory, std::string name,
                                  std::uint32_t mode) override {
    co_return co_await offloaded(run_.loop, [&]() -> Outcome<CopyObject> {
      constexpr std::string_view kVerb = "make the directory";
      const std::string path = path_in(directory, name);
      const Outcome<OpenDirectory> in = opened(kVerb, path, directory);
      if (!in) return Failure{in.error()};
      if (::mkdirat((*in)->fd(), name.c_str(), mode) != 0) return local_failure(kVerb, path, errno);
      const SystemResult<std::optional<CopyObject>> made = look_at((*in)->fd(), directory, name);
      if (!made) return local_failure(kVerb, path, made.error());
      if (!*made) return local_failure(kVerb, path, ENOENT);
      if ((*made)->kind != Kind::Directory) return local_failure(kVerb, path, ESTALE);
      return **made;
    });
  }
  Task<Outcome<Ok>> symlink(CopyObject directory, std::string name, std::string target,
                            Finish finish) override {
    co_return co_await offloaded(run_.loop, [&]() -> Outcome<Ok> {
      constexpr std::string_view kVerb = "make the symbolic link";
      const std::string path = path_in(directory, name);
      const Outcome<OpenDirectory> in = opened(kVerb, path, directory);
      if (!in) return Failure{in.error()};
      const std::string temporary = temporary_name();
      if (::symlinkat(target.c_str(), (*in)->fd(), temporary.c_str()) != 0)
        return local_failure(kVerb, path, errno);
      finish_new_symlink((*in)->fd(), temporary, finish);
      if (::renameat((*in)->fd(), temporary.c_str(), (*in)->fd(), name.c_str()) == 0) return Ok{};
      const int error = errno;
      ::unlinkat((*in)->fd(), temporary.c_str(), 0);
      return local_failure(kVerb, path, error);
    });
  }
  Task<Outcome<std::string>> mknod(CopyObject directory, std::string name, Special special,
                                   Finish finish) override {
    co_return co_await offloaded(run_.loop, [&]() -> Outcome<std::string> {
      const std::string path = path_in(directory, name);
      const Outcome<OpenDirectory> in = opened("make the special file", path, directory);
      if (!in) return Failure{in.error()};
      return make_special((*in)->fd(), name, path, special, finish);
    });
  }
  Task<Outcome<std::unique_ptr<TempFile>>> temp_file(CopyObject directory, std::string name,
                                                     TempFilePlan plan) override {
    std::string path = path_in(directory, name);
    SystemResult<UniqueFd> existing{UniqueFd()};
    if (plan.overwrites())
      existing = co_await when_free([&] { return open_existing(directory, name); });
    if (!existing) co_return local_failure("write", path, existing.error());
    co_return co_await offloaded(run_.loop, [&]() -> Outcome<std::unique_ptr<TempFile>> {
      Outcome<OpenDirectory> in = opened("make the file", path, directory);
      if (!in) return Failure{in.error()};
      return open_local_temp_file(run_, progress_, {*std::move(in), name}, std::move(path),
                                  *std::move(existing), std::move(plan));
    });
  }
  Task<Outcome<std::uint64_t>> unordered_bytes() override { co_return std::uint64_t{0}; }
  Task<Outcome<Ok>> link(CopyObject file, CopyObject directory, std::string name) override {
    co_return co_await offloaded(run_.loop, [&]() -> Outcome<Ok> {
      const std::string path = path_in(directory, name);
      const Outcome<OpenDirectory> in = opened("link", path, directory);
      if (!in) return Failure{in.error()};
      const SystemResult<Ok> made = link_at(tree_, file, (*in)->fd(), directory, name);
      if (!made) return local_failure("link", path, made.error());
      return Ok{};
    });
  }
  Task<Outcome<Ok>> adopt(CopyObject object, Extras extras) override {
    const SystemResult<UniqueFd> fd =
        co_await when_free([&] { return tree_.open(object, kToRead); });
    if (!fd) co_return local_failure("open", object.path, fd.error());
    co_return co_await offloaded(run_.loop,
                                 [&] { return adopt_local(fd->fd(), object.path, extras); });
  }
  Task<Outcome<Ok>> rename(CopyObject directory, std::string name, std::string to) override {
    co_return co_await offloaded(run_.loop, [&]() -> Outcome<Ok> {
      const std::string path = path_in(directory, name);
      const Outcome<OpenDirectory> in = opened("rename", path, directory);
      if (!in) return Failure{in.error()};
      const int fd = (*in)->fd();
      if (::renameat2(fd, name.c_str(), fd, to.c_str(), RENAME_NOREPLACE) == 0) return Ok{};
      // Not every file system has that flag.
      if (errno == EINVAL && ::renameat(fd, name.c_str(), fd, to.c_str()) == 0) return Ok{};
      return local_failure("rename", path, errno);
    });
  }
  Task<Outcome<Ok>> remove(CopyObject directory, Member member) override {
    co_return co_await offloaded(run_.loop, [&]() -> Outcome<Ok> {
      const std::string path = path_in(directory, member.name);
      const Outcome<OpenDirectory> in = opened("remove", path, directory);
      if (!in) return Failure{in.error()};
      const int flags = member.object.kind == Kind::Directory ? AT_REMOVEDIR : 0;
      if (::unlinkat((*in)->fd(), member.name.c_str(), flags) != 0)
        return local_failure("remove", path, errno);
      return Ok{};
    });
  }
  Task<Outcome<Ok>> finish(CopyObject object, Finish finish) override {
    co_return co_await offloaded(run_.loop, [&]() -> Outcome<Ok> {
      SystemResult<UniqueFd> fd =
          tree_.open(object, object.kind == Kind::Other ? kToName : kToRead);
      // What may not be read, or not before a lease of it ends, can be given rights all the same.
      if (!fd && (fd.error() == EACCES || fd.error() == EWOULDBLOCK))
        fd = tree_.open(object, kToName);
      if (!fd) return local_failure("open", object.path, fd.error());
      return finish_local(fd->fd(), object.path, finish);
    });
  }
  Task<Outcome<nfs::client::Time>> modified(CopyObject object) override {
    co_return co_await offloaded(run_.loop, [&]() -> Outcome<nfs::client::Time> {
      const SystemResult<UniqueFd> fd = tree_.open(object, kToName);
      struct stat now {};
      if (!fd) return local_failure("look at", object.path, fd.error());
      if (::fstat(fd->fd(), &now) != 0) return local_failure("look at", object.path, errno);
      return time_of(now.st_mtim);
    });
  }
  Task<void> finish_symlink(CopyObject link, Finish finish) override {
    static_cast<void>(co_await offloaded(run_.loop, [&]() -> SystemResult<Ok> {
      const SystemResult<UniqueFd> fd = tree_.open(link, kToName);
      if (!fd) return Failure{fd.error()};
      finish_local_symlink(fd->fd(), finish);
      return Ok{};
    }));
  }

 private:
  // `open`, on a worker, and again while another program has a lease of the file: by then open(2)
  // has asked for it back (fcntl(2)). The workers are too few to wait there, and could not be
  // interrupted.
  template <class Open>
  Task<SystemResult<UniqueFd>> when_free(Open open) {
    const TimePoint until = run_.loop.now() + kLeasePatience;
    for (;;) {
      SystemResult<UniqueFd> fd = co_await offloaded(run_.loop, [&open] { return open(); });
      const bool leased = !fd && fd.error() == EWOULDBLOCK;
      if (!leased || run_.cancel.cancelled() || run_.loop.now() >= until) co_return fd;
      co_await sleep_for(run_.loop, kLeaseInterval);
    }
  }
  // To be written in place.
  SystemResult<UniqueFd> open_existing(const CopyObject& directory, const std::string& name) {
    constexpr int kFlags = O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    const SystemResult<OpenDirectory> in = tree_.directory(directory);
    if (!in) return Failure{in.error()};
    UniqueFd fd(::openat((*in)->fd(), name.c_str(), kFlags));
    if (!fd) return Failure{errno};
    return fd;
  }
  static Outcome<std::optional<CopyObject>> looked_at(
      const std::string& path, SystemResult<std::optional<CopyObject>> found) {
    if (!found) return local_failure("look at", path, found.error());
    return *std::move(found);
  }
  // To make or remove `path` in it.
  Outcome<OpenDirectory> opened(std::string_view verb, const std::string& path,
                                const CopyObject& directory) {
    SystemResult<OpenDirectory> in = tree_.directory(directory);
    if (in) return *std::move(in);
    // What has changed is the directory.
    return local_failure(verb, in.error() == ESTALE ? directory.path : path, in.error());
  }

  Run& run_;
  Progress& progress_;
  LocalTree tree_;
};

}  // namespace

std::unique_ptr<CopyEndpoint> local_endpoint(Run& run, Progress& progress) {
  return std::make_unique<LocalEndpoint>(run, progress);
}

}  // namespace stag::cli
