#include "cli/observe/capture_queue.h"

#include <chrono>
#include <utility>

#include "fabric/capture/pcapng.h"

namespace stag::cli {

std::uint64_t capture_time() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(since).count());
}

CaptureQueue::CaptureQueue(std::uint64_t most, std::size_t room, std::function<void()> wake)
    : most_(most), room_(room), wake_(std::move(wake)) {
  waiting_.reserve(room_);
  fabric::capture::append_header(waiting_, "stag");
}

void CaptureQueue::take(Bytes frame) {
  const std::lock_guard lock(mutex_);
  ++counts_.frames;
  const std::size_t size = fabric::capture::packet_size(frame.size());
  full_ = full_ || size > most_ - size_;
  if (full_) ++counts_.late;
  if (full_ || ended_ || waiting_.size() + size > room_) {
    ++counts_.lost;
    return;
  }
  size_ += size;
  ++waiting_frames_;
  const bool wakes = wake_ && waiting_.empty();
  fabric::capture::append_packet(waiting_, capture_time(), frame);
  if (wakes) wake_();
}

void CaptureQueue::lose(std::uint64_t frames, std::uint64_t seen) noexcept {
  const std::lock_guard lock(mutex_);
  counts_.frames += seen;
  counts_.lost += frames;
}

void CaptureQueue::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
}

std::uint64_t CaptureQueue::pass_to(std::vector<std::byte>& blocks) {
  blocks.clear();
  blocks.reserve(room_);
  const std::lock_guard lock(mutex_);
  std::swap(waiting_, blocks);
  return std::exchange(waiting_frames_, 0);
}

bool CaptureQueue::is_empty() const {
  const std::lock_guard lock(mutex_);
  return waiting_.empty();
}

bool CaptureQueue::is_full() const {
  const std::lock_guard lock(mutex_);
  return full_;
}

CaptureQueue::Counts CaptureQueue::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace stag::cli
