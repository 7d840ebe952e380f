// Frames that wait to be written to a capture, as blocks of pcapng behind its header. A thread that
// has frames never waits: what finds no room is lost, and counted.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "fabric/capture/tap.h"

namespace stag::cli {

class CaptureQueue final : public fabric::capture::Recorder {
 public:
  // `most`: bytes of frames that it takes in all. `room`: bytes that wait. `wake` is called, with
  // the queue locked, when there is something again; empty: nobody is.
  CaptureQueue(std::uint64_t most, std::size_t room, std::function<void()> wake = {});

  void take(Bytes frame) override;
  void lose() noexcept override { lose(1, 1); }
  // `seen`: how many of them are not counted yet.
  void lose(std::uint64_t frames, std::uint64_t seen) noexcept;
  // Frames that come later are lost.
  void end();

  // What waits, in place of what `blocks` has; returns how many frames it is.
  std::uint64_t pass_to(std::vector<std::byte>& blocks);
  bool is_empty() const;
  // All that it may have has come.
  bool is_full() const;

  struct Counts {
    std::uint64_t frames = 0;
    std::uint64_t lost = 0;  // of them
    std::uint64_t late = 0;  // of those: when it was full already
  };
  Counts counts() const;

 private:
  const std::uint64_t most_;
  const std::size_t room_;
  const std::function<void()> wake_;
  mutable std::mutex mutex_;
  std::vector<std::byte> waiting_;
  Counts counts_;
  std::uint64_t waiting_frames_ = 0, size_ = 0;  // of all frames that were taken
  bool full_ = false, ended_ = false;
};

// Microseconds since 1970.
std::uint64_t capture_time();

}  // namespace stag::cli
