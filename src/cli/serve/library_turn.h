// LibraryTurn: lets one thread at a time use libnfsidmap, which keeps its state in the process,
// those that ask about principals first. A client that lists a directory asks for hundreds of
// owners, and may be told numbers instead; a client that waits for its security context is refused
// when that is late.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace stag::cli {

// Thread: any.
class LibraryTurn {
 public:
  enum class For : std::uint8_t { Principal, Name };

  // Has the turn while it exists, and waits for it first.
  class Held {
   public:
    Held(LibraryTurn& turn, For what) : turn_(turn) { turn_.take(what); }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    ~Held() { turn_.give(); }

   private:
    LibraryTurn& turn_;
  };

  std::size_t waiting(For what) const {
    const std::lock_guard lock(mutex_);
    return what == For::Principal ? principals_ : names_;
  }

 private:
  // Principals are kept for minutes once they are known: names have their turn again.
  void take(For what) {
    std::unique_lock lock(mutex_);
    std::size_t& waiting = what == For::Principal ? principals_ : names_;
    ++waiting;
    free_.wait(lock, [&] { return !taken_ && (what == For::Principal || principals_ == 0); });
    --waiting;
    taken_ = true;
  }
  void give() {
    {
      const std::lock_guard lock(mutex_);
      taken_ = false;
    }
    free_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable free_;
  bool taken_ = false;
  std::size_t principals_ = 0, names_ = 0;  // that wait
};

}  // namespace stag::cli
