// ConnectRetry: whether the first connection to a server is tried once more. One attempt gives a
// host that is silent ten seconds; the user may have said more.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/loop.h"
#include "nfs/client/protocol/error.h"

namespace stag::cli {

class ConnectRetry {
 public:
  // Between two attempts.
  static constexpr Duration kPause = std::chrono::seconds(1);

  // From `now` on: for `silent_for` a server that does not answer is tried again, for `absent_for`
  // also one that is not there yet.
  ConnectRetry(TimePoint now, Duration silent_for, Duration absent_for)
      : silent_until_(now + silent_for), absent_until_(now + absent_for) {}

  bool goes_on(const nfs::client::Error& error, TimePoint now) const;

 private:
  TimePoint silent_until_;
  TimePoint absent_until_;
};

}  // namespace stag::cli
