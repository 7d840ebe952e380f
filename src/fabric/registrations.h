// How many ranges of memory this process has registered with its providers: at a device that is
// what costs system calls and room in its tables; software iWARP has its STags. Counted by the
// providers, on any thread.
#pragma once

#include <cstddef>

#include "base/striped_count.h"

namespace stag::fabric {

// The registrations of one kind of provider.
class RegistrationCount {
 public:
  void add() { made_.place().fetch_add(1, std::memory_order_relaxed); }
  void remove(std::size_t count = 1) {
    if (count != 0) ended_.place().fetch_add(count, std::memory_order_relaxed);
  }

  struct Counts {
    std::size_t now = 0;
    std::size_t made = 0;  // since the process began
  };
  Counts counts() const {
    // In this order what is made meanwhile cannot make it less than none.
    const std::size_t ended = ended_.sum(), made = made_.sum();
    return {made - ended, made};
  }

  // Those of this process.
  static RegistrationCount& of_iwarp() {
    static RegistrationCount count;
    return count;
  }
  static RegistrationCount& of_verbs() {
    static RegistrationCount count;
    return count;
  }

 private:
  StripedCount made_, ended_;
};

// Those of one table, which says how many it has whenever that has changed.
class RegistrationTally {
 public:
  explicit RegistrationTally(RegistrationCount& count) : count_(count) {}
  ~RegistrationTally() { see(0); }
  RegistrationTally(const RegistrationTally&) = delete;
  RegistrationTally& operator=(const RegistrationTally&) = delete;

  // One was added; there are `live` now.
  void add(std::size_t live) {
    see(live - 1);
    seen_ = live;
    count_.add();
  }
  // Some may be gone.
  void see(std::size_t live) {
    if (live >= seen_) return;
    count_.remove(seen_ - live);
    seen_ = live;
  }

 private:
  RegistrationCount& count_;
  std::size_t seen_ = 0;
};

}  // namespace stag::fabric
