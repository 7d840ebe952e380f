#include "cli/observe/capture_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "fabric/capture/pcapng.h"
#include "net/blocked_signals.h"
#include "net/unique_fd.h"

namespace stag::cli {
namespace {

std::uint64_t microseconds_now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(since).count());
}

bool write_to(int fd, Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
  return true;
}

std::string no_file(const std::string& path, const std::string& why) {
  return fmt::format("--capture: cannot write '{}': {}", path, why);
}

// What goes over the connections is this user's alone: what was there before may be anybody's, and
// known by other names. Nothing of it is touched before that is sure.
Result<Ok, std::string> make_private(int fd) {
  struct stat found {};
  if (::fstat(fd, &found) != 0) return Failure{std::string(std::strerror(errno))};
  if (!S_ISREG(found.st_mode)) return Failure{std::string("it is no regular file")};
  if (found.st_uid != ::geteuid()) return Failure{std::string("it belongs to another user")};
  if (found.st_nlink != 1) return Failure{std::string("it has other names, too")};
  if (::fchmod(fd, 0600) != 0 || ::ftruncate(fd, 0) != 0)
    return Failure{std::string(std::strerror(errno))};
  return Ok{};
}

}  // namespace

Result<std::shared_ptr<CaptureFile>, std::string> CaptureFile::open(const std::string& path,
                                                                    std::uint64_t most) {
  // O_NONBLOCK: a FIFO is not waited for.
  constexpr int kFlags = O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW;
  const int fd = ::open(path.c_str(), kFlags, 0600);
  if (fd < 0) return Failure{no_file(path, std::strerror(errno))};
  const auto file = std::make_shared<net::UniqueFd>(fd);
  if (const auto done = make_private(fd); !done) return Failure{no_file(path, done.error())};
  return std::make_shared<CaptureFile>([file](Bytes bytes) { return write_to(file->fd(), bytes); },
                                       most);
}

CaptureFile::CaptureFile(Write write, std::uint64_t most, std::size_t room)
    : write_(std::move(write)), most_(most), room_(room) {
  waiting_.reserve(room_);
  writing_.reserve(room_);
  fabric::capture::append_header(waiting_, "stag");
  const net::BlockedSignals blocked;
  thread_ = std::thread([this] { run(); });
}

void CaptureFile::take(Bytes frame) {
  const std::lock_guard lock(mutex_);
  ++counts_.frames;
  const std::size_t size = fabric::capture::packet_size(frame.size());
  full_ = full_ || size > most_ - size_;
  if (full_ || broken_ || ending_ || waiting_.size() + size > room_) {
    ++counts_.lost;
    return;
  }
  size_ += size;
  ++waiting_frames_;
  const bool wakes = waiting_.empty();
  fabric::capture::append_packet(waiting_, microseconds_now(), frame);
  if (wakes) wake_.notify_one();
}

void CaptureFile::lose() noexcept {
  const std::lock_guard lock(mutex_);
  ++counts_.frames;
  ++counts_.lost;
}

CaptureFile::Counts CaptureFile::finish() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    wake_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
  const std::lock_guard lock(mutex_);
  return counts_;
}

void CaptureFile::run() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    wake_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    write_all(lock);
  }
  write_all(lock);
  fabric::capture::append_statistics(waiting_, microseconds_now(), counts_.frames, counts_.lost);
  write_all(lock);
}

void CaptureFile::write_all(std::unique_lock<std::mutex>& lock) {
  std::swap(waiting_, writing_);
  const std::uint64_t frames = std::exchange(waiting_frames_, 0);
  const bool torn = broken_;  // nothing can stand behind half a block
  lock.unlock();
  const bool written = writing_.empty() || (!torn && write_(writing_));
  writing_.clear();
  lock.lock();
  if (written) return;
  broken_ = true;
  counts_.lost += frames;
}

}  // namespace stag::cli
