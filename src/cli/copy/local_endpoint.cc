// LocalEndpoint: files of this machine as one end of a copy. Blocking calls run on the loop's
// workers.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <utility>

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
  return std::optional<CopyObject>(std::move(object));
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
      Outcome<std::optional<CopyObject>> object = look(below(path_, name), Follow::No);
      if (!object) return Failure{object.error()};
      // Otherwise the entry was removed meanwhile.
      if (*object) members.push_back({name, **object});
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
    co_return co_await offloaded(run_.loop, [&] { return look(path, follow); });
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
  Task<Outcome<std::uint64_t>> feed(CopyObject file, TempFile& temp_file) override {
    Outcome<std::unique_ptr<LocalFile>> opened =
        co_await offloaded(run_.loop, [&] { return LocalFile::open(run_.loop, file.path); });
    if (!opened) co_return Failure{opened.error()};
    co_return co_await temp_file.fill(**opened);
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
  Task<Outcome<Ok>> symlink(CopyObject directory, std::string name, std::string target) override {
    co_return co_await offloaded(run_.loop, [&]() -> Outcome<Ok> {
      const std::string path = below(directory.path, name);
      const std::string temporary = below(directory.path, temporary_name());
      if (::symlink(target.c_str(), temporary.c_str()) != 0)
        return trouble("make the symbolic link", path, errno);
      if (::rename(temporary.c_str(), path.c_str()) == 0) return Ok{};
      const int error = errno;
      ::unlink(temporary.c_str());
      return trouble("make the symbolic link", path, error);
    });
  }
  Task<Outcome<std::unique_ptr<TempFile>>> temp_file(CopyObject directory, std::string name,
                                                     TempFilePlan plan) override {
    co_return co_await offloaded(run_.loop, [&] {
      return open_local_temp_file(run_, progress_, below(directory.path, name), std::move(plan));
    });
  }
  Task<Outcome<Ok>> finish(CopyObject directory, Finish finish) override {
    co_return co_await offloaded(run_.loop, [&]() -> Outcome<Ok> {
      constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
      const net::UniqueFd fd(::open(directory.path.c_str(), kFlags));
      if (!fd) return trouble("open", directory.path, errno);
      return finish_local(fd.fd(), directory.path, finish);
    });
  }

 private:
  Run& run_;
  Progress& progress_;
};

}  // namespace

std::unique_ptr<CopyEndpoint> local_endpoint(Run& run, Progress& progress) {
  return std::make_unique<LocalEndpoint>(run, progress);
}

}  // namespace stag::cli
