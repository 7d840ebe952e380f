// Waiting for something of a file to go, or to go on.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

namespace stag::nfs::state {

// Begun: what was given to be run runs once, on whatever thread; it only posts. NoNeed: ask again.
enum class Wait : std::uint8_t { Begun, NoNeed, TooMany };

// A place among those who wait. The end of a place ends the waiting, also that of a waiter that
// gave up: it takes neither memory nor one of the places. A waiter that is being called in that
// moment may be called all the same. Files outlives it.
class WaitPlace {
 public:
  WaitPlace() = default;
  WaitPlace(const WaitPlace&) = delete;
  WaitPlace& operator=(const WaitPlace&) = delete;
  virtual ~WaitPlace() = default;
};

struct [[nodiscard]] Waiting {
  Waiting(Wait of, std::unique_ptr<WaitPlace> until_left = nullptr)
      : how(of), place(std::move(until_left)) {}
  Wait how;
  // Null where nobody waits, or what is waited for remembers one only.
  std::unique_ptr<WaitPlace> place;
};

}  // namespace stag::nfs::state
