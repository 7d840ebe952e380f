#include "vfs/posix/ofd_locks.h"

#include <fcntl.h>

#include <cerrno>
#include <limits>

#include "vfs/posix/errors.h"

namespace stag::vfs::posix {
namespace {

// Programs name no byte beyond.
constexpr std::uint64_t kLastByte = std::numeric_limits<off_t>::max();

struct flock to_flock(const LocalRange& range, LockMode mode) {
  struct flock lock {};
  lock.l_type = mode == LockMode::None ? F_UNLCK : mode == LockMode::Shared ? F_RDLCK : F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(range.first);
  // 0: to the end, however far the file grows.
  if (range.last < kLastByte) lock.l_len = static_cast<off_t>(range.last - range.first + 1);
  return lock;
}

LocalLock to_local_lock(const struct flock& lock) {
  LocalLock found;
  found.exclusive = lock.l_type == F_WRLCK;
  found.range.first = static_cast<std::uint64_t>(lock.l_start);
  if (lock.l_len != 0)
    found.range.last =
        static_cast<std::uint64_t>(lock.l_start) + static_cast<std::uint64_t>(lock.l_len) - 1;
  return found;
}

class OfdLocks final : public LocalLocks {
 public:
  OfdLocks(ObjectRef object, SharedDescriptor descriptor, std::shared_ptr<Executor> workers)
      : object_(std::move(object)),
        descriptor_(std::move(descriptor)),
        workers_(std::move(workers)) {}

  // The description may be that of a lease, and live on. To close it may block.
  ~OfdLocks() override {
    if (used_) static_cast<void>(set({}, LockMode::None));
    if (workers_ == nullptr) return;
    Executor::Job job{[object = std::move(object_), descriptor = std::move(descriptor_)] {},
                      {},
                      [](void*, Executor::Function) {}};
    job.must_run = true;
    workers_->submit(std::move(job));
  }

  Outcome<std::optional<LocalLock>> set(LocalRange range, LockMode mode) override {
    constexpr int kTries = 3;
    if (range.first > kLastByte) return std::optional<LocalLock>();
    used_ = true;
    for (int i = 0; i < kTries; ++i) {
      struct flock lock = to_flock(range, mode);
      if (::fcntl(descriptor_->fd(), F_OFD_SETLK, &lock) == 0) return std::optional<LocalLock>();
      // Not open for that, because the file, or its file system, is not for writing.
      if (errno == EBADF) return Failure{Status::NotSupported};
      if (errno != EAGAIN && errno != EACCES) return last_error();
      if (const auto found = conflict(range, mode)) return found;
    }
    return std::optional(LocalLock{range, true});
  }

  std::optional<LocalLock> conflict(LocalRange range, LockMode mode) const override {
    if (range.first > kLastByte) return std::nullopt;
    struct flock lock = to_flock(range, mode);
    if (::fcntl(descriptor_->fd(), F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK)
      return std::nullopt;
    return to_local_lock(lock);
  }

 private:
  ObjectRef object_;
  SharedDescriptor descriptor_;
  const std::shared_ptr<Executor> workers_;
  bool used_ = false;
};

}  // namespace

std::unique_ptr<LocalLocks> make_ofd_locks(ObjectRef object, SharedDescriptor descriptor,
                                           std::shared_ptr<Executor> workers) {
  return std::make_unique<OfdLocks>(std::move(object), std::move(descriptor), std::move(workers));
}

}  // namespace stag::vfs::posix
