#include "cli/observe/capture_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "fabric/capture/pcapng.h"
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

}  // namespace

Result<std::shared_ptr<CaptureFile>, std::string> CaptureFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0)
    return Failure{fmt::format("--capture: cannot write '{}': {}", path, std::strerror(errno))};
  const auto file = std::make_shared<net::UniqueFd>(fd);
  return std::make_shared<CaptureFile>([file](Bytes bytes) { return write_to(file->fd(), bytes); });
}

CaptureFile::CaptureFile(Write write, std::size_t room) : write_(std::move(write)), room_(room) {
  waiting_.reserve(room_);
  writing_.reserve(room_);
  fabric::capture::append_header(waiting_, "stag");
  thread_ = std::thread([this] { run(); });
}

void CaptureFile::take(Bytes frame) {
  const std::lock_guard lock(mutex_);
  ++counts_.frames;
  const std::size_t size = fabric::capture::packet_size(frame.size());
  if (broken_ || ending_ || waiting_.size() + size > room_) {
    ++counts_.lost;
    return;
  }
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
  lock.unlock();
  const bool written = writing_.empty() || write_(writing_);
  writing_.clear();
  lock.lock();
  broken_ = broken_ || !written;
}

}  // namespace stag::cli
