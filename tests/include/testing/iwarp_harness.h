// Drives software iWARP for the tests that every fabric passes.
#pragma once

#include <string>

#include "fabric/iwarp/iwarp_fabric.h"
#include "testing/epoll_harness.h"

namespace stag::testing {

class IwarpHarness final : public EpollHarness {
 public:
  IwarpHarness(fabric::IwarpOptions options, std::string host)
      : EpollHarness(std::move(host)), fabric_(loop(), options) {}

  fabric::Fabric& fabric() override { return fabric_; }

 private:
  fabric::IwarpFabric fabric_;
};

}  // namespace stag::testing
