// Runs a provider that stands on an EpollLoop, for the tests that every fabric passes: everything
// on the test's thread.
#pragma once

#include <functional>
#include <string>

#include "net/loop.h"
#include "testing/fabric_harness.h"

namespace stag::testing {

class EpollHarness : public FabricHarness {
 public:
  // `patience`: for slow machines; only a failing test waits for it.
  explicit EpollHarness(std::string host, Duration patience = std::chrono::seconds(20))
      : host_(std::move(host)), patience_(patience) {}

  net::EpollLoop& loop() override { return loop_; }
  Address any_address() override { return {host_, 0}; }
  bool run_until(const std::function<bool()>& predicate) override {
    const TimePoint limit = loop_.now() + patience_;
    while (!predicate()) {
      if (loop_.now() > limit) return false;
      run_for(std::chrono::microseconds(50));
    }
    return true;
  }
  // Both sides are on this loop and the kernel's loopback has no delays, so turns count, not time.
  void settle() override {
    int turns = 300;
    next_turn(turns);
    loop_.run();
  }

 private:
  void next_turn(int& left) {
    loop_.post([this, &left] {
      if (--left == 0) return loop_.stop();
      next_turn(left);
    });
  }
  void run_for(Duration time) {
    const Timer end = loop_.after(time, [this] { loop_.stop(); });
    loop_.run();
  }

  net::EpollLoop loop_;
  const std::string host_;
  const Duration patience_;
};

}  // namespace stag::testing
