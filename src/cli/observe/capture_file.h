// A file of frames that Wireshark reads (--capture). A thread writes it; whoever has frames never
// waits for that: where the disk is slower than they come, some are lost, and counted.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"
#include "fabric/capture/captured_fabric.h"

namespace stag::cli {

class CaptureFile final : public fabric::capture::Recorder {
 public:
  // Writes all bytes; false: no more can be written.
  using Write = std::function<bool(Bytes)>;
  static constexpr std::size_t kRoom = std::size_t{32} << 20;  // bytes that wait to be written
  static constexpr std::uint64_t kLeast = 1 << 20;             // bytes that a file may have
  static constexpr std::uint64_t kUsual = std::uint64_t{16} << 30;

  // Of this user alone; one that is there is overwritten, if it is a regular file of this user's
  // without other names. It gets frames until it has `most` bytes. The error is a sentence.
  static Result<std::shared_ptr<CaptureFile>, std::string> open(const std::string& path,
                                                                std::uint64_t most);
  explicit CaptureFile(Write write, std::uint64_t most = kUsual, std::size_t room = kRoom);
  ~CaptureFile() override { finish(); }
  CaptureFile(const CaptureFile&) = delete;
  CaptureFile& operator=(const CaptureFile&) = delete;

  // Any thread.
  void take(Bytes frame) override;
  void lose() noexcept override;

  struct Counts {
    std::uint64_t frames = 0;
    std::uint64_t lost = 0;  // of them
  };
  // Writes what waits, and how many there were. What is taken later is lost. Blocking.
  Counts finish();

 private:
  void run();
  // Without the lock meanwhile.
  void write_all(std::unique_lock<std::mutex>& lock);

  const Write write_;
  const std::uint64_t most_;
  const std::size_t room_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::byte> waiting_, writing_;
  Counts counts_;
  std::uint64_t waiting_frames_ = 0, size_ = 0;  // of all frames that were taken, in the file
  bool ending_ = false, broken_ = false, full_ = false;
  std::thread thread_;  // after all that it uses
};

}  // namespace stag::cli
