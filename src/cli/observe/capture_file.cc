#include "cli/observe/capture_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "cli/support/file_lock.h"
#include "fabric/capture/pcapng.h"
#include "net/blocked_signals.h"

namespace stag::cli {
namespace {

bool write_to(int fd, Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
  return true;
}

std::string no_file(const std::string& path, const std::string& why) {
  return fmt::format("cannot write '{}': {}", path, why);
}

// O_NONBLOCK: a FIFO is not waited for.
UniqueFd open_to_write(const std::string& path) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW;
  return UniqueFd(::open(path.c_str(), kFlags, 0600));
}

// What goes over the connections is this user's alone: what was there before may be anybody's, and
// known by other names.
Result<Ok, std::string> check_owned(int fd) {
  struct stat found {};
  if (::fstat(fd, &found) != 0) return Failure{std::string(std::strerror(errno))};
  if (!S_ISREG(found.st_mode)) return Failure{std::string("it is no regular file")};
  if (found.st_uid != ::geteuid()) return Failure{std::string("it belongs to another user")};
  if (found.st_nlink != 1) return Failure{std::string("it has other names, too")};
  return Ok{};
}

// Nothing of what was there before is touched until it is sure whose it is.
Result<Ok, std::string> make_private(int fd, Duration wait) {
  if (const auto checked = check_owned(fd); !checked) return checked;
  if (!lock_within(fd, wait)) return Failure{std::string("another process captures to it")};
  if (::fchmod(fd, 0600) != 0 || ::ftruncate(fd, 0) != 0)
    return Failure{std::string(std::strerror(errno))};
  return Ok{};
}

class WholeBlocks {
 public:
  WholeBlocks(UniqueFd file, CaptureFile::Stopped stopped)
      : file_(std::move(file)), stopped_(std::move(stopped)) {}

  // All of it, or none.
  bool write(Bytes blocks) {
    if (write_to(file_.fd(), blocks)) return size_ += static_cast<off_t>(blocks.size()), true;
    const int why = errno;
    // Nothing can stand behind half a block, nor without the first one.
    if (size_ == 0 || ::ftruncate(file_.fd(), size_) != 0 ||
        ::lseek(file_.fd(), size_, SEEK_SET) != size_)
      file_ = UniqueFd();
    if (const auto stopped = std::exchange(stopped_, nullptr)) stopped(std::strerror(why));
    return false;
  }

 private:
  UniqueFd file_;
  CaptureFile::Stopped stopped_;
  off_t size_ = 0;
};

}  // namespace

Result<UniqueFd, std::string> open_capture_file(const std::string& path, Duration wait) {
  UniqueFd file = open_to_write(path);
  if (!file) return Failure{no_file(path, std::strerror(errno))};
  if (const auto done = make_private(file.fd(), wait); !done)
    return Failure{no_file(path, done.error())};
  return file;
}

Result<Ok, std::string> rehearse_capture_file(const std::string& path) {
  const UniqueFd file = open_to_write(path);
  if (!file) return Failure{no_file(path, std::strerror(errno))};
  if (const auto checked = check_owned(file.fd()); !checked)
    return Failure{no_file(path, checked.error())};
  return Ok{};
}

Result<std::unique_ptr<CaptureFile>, std::string> CaptureFile::open(const std::string& path,
                                                                    std::uint64_t most,
                                                                    Stopped stopped,
                                                                    Duration wait) {
  auto opened = open_capture_file(path, wait);
  if (!opened) return Failure{"--capture: " + opened.error()};
  const auto to = std::make_shared<WholeBlocks>(*std::move(opened), std::move(stopped));
  return std::make_unique<CaptureFile>([to](Bytes bytes) { return to->write(bytes); }, most);
}

CaptureFile::CaptureFile(Write write, std::uint64_t most, std::size_t room)
    : write_(std::move(write)), queue_(std::make_shared<CaptureQueue>(most, room, [this] {
        const std::lock_guard lock(mutex_);
        woken_ = true;
        wake_.notify_one();
      })) {
  writing_.reserve(room);
  const net::BlockedSignals blocked;
  thread_ = std::thread([this] { run(); });
}

CaptureQueue::Counts CaptureFile::finish() {
  queue_->end();
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    wake_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
  return queue_->counts();
}

void CaptureFile::run() {
  for (bool last = false; !last;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return ending_ || woken_; });
      last = ending_;
      woken_ = false;
    }
    write_waiting();
  }
  const CaptureQueue::Counts counts = queue_->counts();
  writing_.clear();
  fabric::capture::append_statistics(writing_, capture_time(), counts.frames, counts.lost);
  write_(writing_);
}

void CaptureFile::write_waiting() {
  const std::uint64_t frames = queue_->pass_to(writing_);
  if (writing_.empty() || (!stopped_ && write_(writing_))) return;
  stopped_ = true;
  queue_->end();
  queue_->lose(frames, 0);
}

}  // namespace stag::cli
