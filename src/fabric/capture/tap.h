// Tap: where captures begin and end while connections come and go. Connections of a captured
// fabric (captured_fabric.h) ask it, for each operation and event, whether anybody captures: one
// relaxed load. A program that wants frames adds a Recorder.
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/brief_mutex.h"
#include "base/bytes.h"
#include "base/network.h"
#include "fabric/capture/frames.h"

namespace stag::fabric::capture {

// Keeps the frames. Any thread; must not block. What take() throws costs this recorder the frame,
// nothing else.
class Recorder : public FrameSink {
 public:
  virtual ~Recorder() = default;
  // A frame, or the frames of an operation, could not be made.
  virtual void lose() noexcept = 0;
};

class Tap {
 public:
  // `peer`: only the frames of connections with peers there; nullopt: of all.
  void add(std::shared_ptr<Recorder> recorder, std::optional<IpNetwork> peer = std::nullopt);
  // It gets nothing any more from now on.
  void remove(const Recorder& recorder);

  // Another number whenever a recorder begins; 0 while there is none.
  std::uint64_t newest() const { return newest_.load(std::memory_order_relaxed); }
  // For those recorders whose number is higher than `after`: they began later.
  void take(Bytes frame, const IpAddress& peer, std::uint64_t after) noexcept;
  void lose(const IpAddress& peer) noexcept;

 private:
  struct Entry {
    std::uint64_t number;
    std::optional<IpNetwork> peer;
    std::shared_ptr<Recorder> recorder;
    bool wants(const IpAddress& from) const { return !peer || peer->contains(from); }
  };

  std::atomic<std::uint64_t> newest_{0};
  BriefMutex mutex_;
  std::uint64_t last_ = 0;  // number given
  std::vector<Entry> entries_;
};

}  // namespace stag::fabric::capture
