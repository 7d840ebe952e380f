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

  // Of this user alone; one that is there is overwritten. The error is a sentence.
  static Result<std::shared_ptr<CaptureFile>, std::string> open(const std::string& path);
  explicit CaptureFile(Write write, std::size_t room = kRoom);
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
  const std::size_t room_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::byte> waiting_, writing_;
  Counts counts_;
  bool ending_ = false, broken_ = false;
  std::thread thread_;  // after all that it uses
};

}  // namespace stag::cli
