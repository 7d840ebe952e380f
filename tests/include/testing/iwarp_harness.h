// Drives the provider for the tests that every fabric passes: everything on the test's thread.
#pragma once

#include <functional>
#include <string>

#include "fabric/iwarp/iwarp_fabric.h"
#include "net/loop.h"
#include "testing/fabric_contract/harness.h"

namespace stag::testing {

class IwarpHarness final : public FabricHarness {
 public:
  IwarpHarness(fabric::IwarpOptions options, std::string host)
      : fabric_(loop_, options), host_(std::move(host)) {}

  Loop& loop() override { return loop_; }
  fabric::Fabric& fabric() override { return fabric_; }
  Address any_address() override { return {host_, 0}; }
  bool run_until(const std::function<bool()>& predicate) override {
    // Generous, for slow machines: only a failing test waits for it.
    const TimePoint limit = loop_.now() + std::chrono::seconds(20);
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
  fabric::IwarpFabric fabric_;
  std::string host_;
};

}  // namespace stag::testing
