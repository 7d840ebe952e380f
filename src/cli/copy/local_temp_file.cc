#include "cli/copy/local_temp_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/unique_fd.h"
#include "cli/copy/local_extras.h"
#include "cli/support/local_file.h"

namespace stag::cli {
namespace {

using nfs::client::DataSink;
using nfs::client::DataSource;
using nfs::client::Error;

timespec timespec_of(const nfs::client::Time& time) {
  return {static_cast<time_t>(time.seconds), static_cast<long>(time.nanoseconds)};
}

bool owned_by(int fd, const Owner& owner) {
  struct stat now {};
  return fstat(fd, &now) == 0 && Owner{now.st_uid, now.st_gid} == owner;
}

bool change_owner(int fd, uid_t uid, gid_t gid) {
  return ::fchownat(fd, "", uid, gid, AT_EMPTY_PATH) == 0;
}
// With O_PATH a descriptor takes no fchmod(2) and futimens(2).
bool change_mode(int fd, mode_t mode) {
  return ::fchmod(fd, mode) == 0 ||
         (errno == EBADF && ::chmod(name_of_open(fd).c_str(), mode) == 0);
}
bool change_times(int fd, const std::array<timespec, 2>& times) {
  return ::futimens(fd, times.data()) == 0 ||
         (errno == EBADF && ::utimensat(AT_FDCWD, name_of_open(fd).c_str(), times.data(), 0) == 0);
}

// Sets the owner, or at least the group. False, with errno set, when the file does not have that
// owner.
bool give_to(int fd, const Owner& owner) {
  if (owned_by(fd, owner)) return true;
  errno = EPERM;
  if (!can_own(owner)) return false;
  if (change_owner(fd, owner.uid, owner.gid)) return owned_by(fd, owner);
  const int error = errno;
  static_cast<void>(change_owner(fd, static_cast<uid_t>(-1), owner.gid));
  errno = error;
  return false;
}

// Fails when kOwnersBits are set and cannot be cleared.
bool take_owners_bits(int fd) {
  struct stat now {};
  if (fstat(fd, &now) != 0) return false;
  return (now.st_mode & kOwnersBits) == 0 || change_mode(fd, now.st_mode & 0777);
}

// A mode that differs only in bits which the system clears for users other than the owner is
// accepted.
bool set_mode(int fd, std::uint32_t mode) {
  struct stat now {};
  if (fstat(fd, &now) != 0) return false;
  if ((now.st_mode & 07777) == mode || change_mode(fd, mode)) return true;
  return errno == EPERM && (now.st_mode & 0777) == (mode & 0777);
}

class LocalTempFile final : public TempFile, private DataSink {
 public:
  // `temporary` is empty for a file that is written in place.
  LocalTempFile(Run& run, Progress& progress, LocalPlace place, std::string path,
                std::string temporary, UniqueFd fd, const TempFilePlan& plan)
      : run_(run),
        progress_(progress),
        place_(std::move(place)),
        path_(std::move(path)),
        temporary_(std::move(temporary)),
        fd_(std::move(fd)),
        finish_(plan.finish),
        sparse_(plan.sparse),
        keep_existing_(plan.keep_existing),
        new_name_(plan.new_name) {}

  bool in_place() const override { return temporary_.empty(); }
  // Never called: a copy has at most one local end.
  Task<Outcome<Ok>> fill(DataSource&, std::uint64_t) override {
    co_return Failure{Error::of_local("both sides of the copy are files of this machine")};
  }
  DataSink& sink() override { return *this; }
  Task<Outcome<bool>> punch(nfs::client::FileRange range) override {
    // Where the file system has no holes, what is there stays: it reads the same.
    co_return co_await offloaded(run_.loop, [&]() -> Outcome<bool> {
      return ::fallocate(fd_.fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                         static_cast<off_t>(range.offset), static_cast<off_t>(range.length)) == 0;
    });
  }
  Task<Outcome<Ok>> adopt(Extras extras) override {
    co_return co_await offloaded(run_.loop, [&] { return adopt_local(fd_.fd(), path_, extras); });
  }

  Task<Outcome<bool>> publish(std::uint64_t size) override {
    co_return co_await offloaded(run_.loop, [&]() -> Outcome<bool> { return publish_now(size); });
  }
  Task<void> discard() override {
    if (in_place()) co_return;
    const bool gone = co_await offloaded(run_.loop, [&] {
      return ::unlinkat(place_.directory->fd(), temporary_.c_str(), 0) == 0 || errno == ENOENT;
    });
    if (!gone) progress_.leftovers.push_back(path_.substr(0, path_.rfind('/') + 1) + temporary_);
  }

 private:
  Task<Outcome<Ok>> write(std::uint64_t offset, Bytes data) override {
    progress_.bytes += data.size();
    co_return co_await offloaded(run_.loop,
                                 [&]() -> Outcome<Ok> { return write_now(offset, data); });
  }

  Outcome<Ok> write_now(std::uint64_t offset, Bytes data) {
    while (!data.empty()) {
      const Stretch stretch =
          sparse_ ? next_stretch(data, offset) : Stretch{.length = data.size(), .zeros = false};
      const Bytes part = data.first(stretch.length);
      if (!stretch.zeros && !write_fully(fd_.fd(), part, offset))
        return local_failure("write", path_, errno);
      offset += part.size();
      data = data.subspan(part.size());
    }
    return Ok{};
  }

  Outcome<bool> publish_now(std::uint64_t size) {
    if (ftruncate(fd_.fd(), static_cast<off_t>(size)) != 0)
      return local_failure("write", path_, errno);
    const Outcome<Ok> finished = finish_local(fd_.fd(), path_, finish_);
    if (!finished) return Failure{finished.error()};
    // Some file systems report only now that the data does not fit.
    if (::close(fd_.release()) != 0) return local_failure("write", path_, errno);
    const bool replaces = !keep_existing_ && !new_name_;
    if (in_place() || rename_now(replaces ? 0 : RENAME_NOREPLACE)) return true;
    if (keep_existing_ && errno == EEXIST) return false;
    // Not every file system has that flag; the copier has looked a moment ago.
    if (!replaces && errno == EINVAL && rename_now(0)) return true;
    return local_failure("write", path_, errno);
  }
  bool rename_now(unsigned flags) {
    const int directory = place_.directory->fd();
    return ::renameat2(directory, temporary_.c_str(), directory, place_.name.c_str(), flags) == 0;
  }

  Run& run_;
  Progress& progress_;
  const LocalPlace place_;
  const std::string path_;  // for messages
  const std::string temporary_;
  UniqueFd fd_;
  const Finish finish_;
  const bool sparse_;
  const bool keep_existing_;
  const bool new_name_;
};

Outcome<std::unique_ptr<TempFile>> open_in_place(Run& run, Progress& progress, LocalPlace place,
                                                 std::string path, UniqueFd fd,
                                                 const TempFilePlan& plan) {
  struct stat now {};
  if (fstat(fd.fd(), &now) != 0) return local_failure("write", path, errno);
  if (!S_ISREG(now.st_mode)) return local_failure("write", path, EINVAL);
  if (now.st_dev != plan.existing->fsid || now.st_ino != plan.existing->file_id)
    return local_failure("write", path, ESTALE);
  // If this is refused, the system clears the bits at the first change by another user than the
  // owner.
  static_cast<void>(take_owners_bits(fd.fd()));
  if (ftruncate(fd.fd(), static_cast<off_t>(plan.kept)) != 0)
    return local_failure("write", path, errno);
  return std::unique_ptr<TempFile>(std::make_unique<LocalTempFile>(
      run, progress, std::move(place), std::move(path), "", std::move(fd), plan));
}

}  // namespace

Outcome<Ok> finish_local(int fd, const std::string& named, const Finish& finish) {
  std::uint32_t mode = finish.mode;
  if (finish.owner && !owned_by(fd, *finish.owner)) {
    const bool taken = take_owners_bits(fd);
    if (!taken && errno != EPERM) return local_failure("set the mode of", named, errno);
    // Taking the bits away and giving the object away take the same right.
    if (!taken || !give_to(fd, *finish.owner)) {
      if (errno != EPERM && errno != EINVAL) return local_failure("give away", named, errno);
      mode &= ~kOwnersBits;
    }
  }
  if (!set_mode(fd, mode)) return local_failure("set the mode of", named, errno);
  const std::array<timespec, 2> times{timespec_of(finish.accessed), timespec_of(finish.modified)};
  if (finish.times && !change_times(fd, times))
    return local_failure("set the times of", named, errno);
  return Ok{};
}

void finish_local_symlink(int fd, const Finish& finish) {
  if (finish.owner && can_own(*finish.owner))
    static_cast<void>(change_owner(fd, finish.owner->uid, finish.owner->gid));
  const std::array<timespec, 2> times{timespec_of(finish.accessed), timespec_of(finish.modified)};
  if (finish.times) static_cast<void>(change_times(fd, times));
}

Outcome<std::unique_ptr<TempFile>> open_local_temp_file(Run& run, Progress& progress,
                                                        LocalPlace place, std::string path,
                                                        UniqueFd existing, TempFilePlan plan) {
  if (plan.overwrites())
    return open_in_place(run, progress, std::move(place), std::move(path), std::move(existing),
                         plan);
  std::string temporary;
  if (!plan.in_place) temporary = temporary_name();
  const std::string& made = plan.in_place ? place.name : temporary;
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  // A copy that is interrupted in place leaves a file with the mode that it then keeps, and must be
  // able to go on with it.
  const mode_t first = plan.in_place ? plan.first_mode() | S_IWUSR : 0600;
  UniqueFd fd(::openat(place.directory->fd(), made.c_str(), kFlags, first));
  if (!fd && plan.existing && (errno == EACCES || errno == EPERM))
    return std::unique_ptr<TempFile>();
  if (!fd) return local_failure("make the file", path, errno);
  if (plan.keeps_owner() && !give_to(fd.fd(), *plan.finish.owner)) {
    ::unlinkat(place.directory->fd(), temporary.c_str(), 0);
    return std::unique_ptr<TempFile>();
  }
  return std::unique_ptr<TempFile>(std::make_unique<LocalTempFile>(
      run, progress, std::move(place), std::move(path), std::move(temporary), std::move(fd), plan));
}

}  // namespace stag::cli
