// A file of frames that Wireshark reads (--capture). A thread writes it; a thread that has frames
// never waits for that: where the disk is slower than they come, some are lost, and counted.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/loop.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "cli/observe/capture_queue.h"

namespace stag::cli {

// A file for frames, of this user alone; one that is there is overwritten, if it is a regular file
// of this user's without other names. Waits so long for another process that writes it. The error
// is a sentence. Blocking.
Result<UniqueFd, std::string> open_capture_file(const std::string& path, Duration wait = {});

// Whether that could succeed, if nobody else writes the file; leaves what is in it. The error is a
// sentence. Blocking.
Result<Ok, std::string> rehearse_capture_file(const std::string& path);

class CaptureFile {
 public:
  // Writes all bytes, or none: then no frames follow, only how many there were.
  using Write = std::function<bool(Bytes)>;
  // Frames are lost from now on, and why. Called once at most, on the thread that writes.
  using Stopped = std::function<void(const std::string& why)>;
  static constexpr std::size_t kRoom = std::size_t{32} << 20;  // bytes that wait to be written
  static constexpr std::uint64_t kLeast = 1 << 20;             // bytes that a file may have
  static constexpr std::uint64_t kUsual = std::uint64_t{16} << 30;

  // It gets frames until it has `most` bytes. The rest as open_capture_file().
  static Result<std::unique_ptr<CaptureFile>, std::string> open(const std::string& path,
                                                                std::uint64_t most,
                                                                Stopped stopped = {},
                                                                Duration wait = {});
  explicit CaptureFile(Write write, std::uint64_t most = kUsual, std::size_t room = kRoom);
  ~CaptureFile() { finish(); }
  CaptureFile(const CaptureFile&) = delete;
  CaptureFile& operator=(const CaptureFile&) = delete;

  // The queue that gets the frames.
  std::shared_ptr<CaptureQueue> queue() const { return queue_; }
  // Writes what waits, and how many there were. What is taken later is lost. Blocking.
  CaptureQueue::Counts finish();

 private:
  void run();
  void write_waiting();

  const Write write_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool woken_ = true;  // the header waits
  bool ending_ = false;
  // The thread's.
  std::vector<std::byte> writing_;
  bool stopped_ = false;
  std::shared_ptr<CaptureQueue> queue_;
  std::thread thread_;  // after all that it uses
};

}  // namespace stag::cli
