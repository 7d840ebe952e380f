// LongWaits: notices when programs wait for the server for long, for a line in the log: Linux's own
// client says "not responding, still trying". It costs a request two changes of pointers, and
// nothing runs while there are none.
//
// Thread: the loop of the Mount.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "base/loop.h"
#include "base/unique_function.h"

namespace stag::fuse {

class LongWaits {
 public:
  // Waits are looked at now and then; at the third time one is long.
  static constexpr Duration kLook = std::chrono::seconds(30);
  static constexpr std::uint64_t kLong = 3;

  // How many requests wait for long, and the thread of the first, as the kernel numbers it; or,
  // once none does any more, 0.
  using Tell = UniqueFunction<void(std::size_t requests, pid_t first)>;

  // A request that waits, until its end() or its end.
  class Waiting {
   public:
    Waiting() = default;
    ~Waiting() { end(); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    // Once; `all` outlives it.
    void begin(LongWaits& all, pid_t thread);
    void end();

   private:
    friend LongWaits;
    Waiting* before_ = this;
    Waiting* after_ = this;
    std::uint64_t since_ = 0;  // looks of the LongWaits
    pid_t thread_ = 0;
  };

  explicit LongWaits(Loop& loop) : loop_(loop) {}
  void set_tell(Tell tell) { tell_ = std::move(tell); }

 private:
  void look_later() noexcept;
  void look();
  void tell(std::size_t requests, pid_t first) noexcept;

  Loop& loop_;
  Tell tell_;
  Waiting all_;  // a ring, in which this one is before the first
  std::uint64_t looks_ = 0;
  bool looking_ = false;
  bool told_ = false;
  Timer timer_;
};

}  // namespace stag::fuse
