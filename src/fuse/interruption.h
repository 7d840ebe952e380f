// Interruption: when a request is answered whose program was interrupted while the server does not
// answer. Its operation goes on and keeps its memory until then, and programs can be started and
// interrupted again and again: AbandonedBytes says how much such operations may keep together.
//
// Thread: the loop of the Mount.
#pragma once

#include <cstddef>
#include <utility>

#include "base/loop.h"

namespace stag::fuse {

// Memory of operations that nobody waits for any more.
class AbandonedBytes {
 public:
  // Room for some 250 programs that each read or wrote a megabyte, or for 16 000 that did not.
  static constexpr std::size_t kMost = std::size_t{256} << 20;
  // Of an operation, beside what it reads or writes: its coroutines, its call and the reply.
  static constexpr std::size_t kOfOperation = std::size_t{16} << 10;

  // False: there is no room for them.
  bool add(std::size_t bytes) {
    if (bytes > kMost - bytes_) return false;
    bytes_ += bytes;
    return true;
  }
  void remove(std::size_t bytes) { bytes_ -= bytes; }

 private:
  std::size_t bytes_ = 0;
};

class Interruption {
 public:
  // Signals that end no program come here, too, and few programs expect EINTR from files.
  static constexpr Duration kPatience = std::chrono::seconds(2);

  // Both outlive it.
  Interruption(Loop& loop, AbandonedBytes& abandoned) : loop_(loop), abandoned_(abandoned) {}
  // The operation has ended.
  ~Interruption() { abandoned_.remove(counted_); }
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  // The operation reads or writes by so many bytes of memory of its own.
  void holds(std::size_t bytes) { held_ += bytes; }
  // The program was interrupted. Runs `give_up` after a while, once there is room for what the
  // operation leaves behind; never, if memory runs out before.
  void begin(Loop::Function give_up) noexcept;
  // The request was answered.
  void end() { patience_.cancel(); }

 private:
  void wait() noexcept;
  void on_patience_over();

  Loop& loop_;
  AbandonedBytes& abandoned_;
  std::size_t held_ = AbandonedBytes::kOfOperation;
  std::size_t counted_ = 0;  // as abandoned
  Loop::Function give_up_;
  Timer patience_;
};

}  // namespace stag::fuse
