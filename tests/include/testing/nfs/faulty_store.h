// A store whose operations fail while a fault is set, all but attributes().
#pragma once

#include "testing/vfs/stepped_store.h"

namespace stag::testing {

class FaultyStore : public vfs::testing::SteppedStore {
 public:
  explicit FaultyStore(std::shared_ptr<vfs::FileSystem> inner)
      : SteppedStore(std::move(inner),
                     std::make_shared<vfs::testing::FailingSteps>(
                         [this](vfs::testing::Point point) { return fault_at(point); })) {}

  // Before anything has happened.
  std::optional<vfs::Status> fault;
  // When it has.
  std::optional<vfs::Status> fault_when_happened;

 private:
  std::optional<vfs::Status> fault_at(vfs::testing::Point point) const {
    if (point.operation == vfs::testing::Called::Attributes) return std::nullopt;
    return point.when == vfs::testing::Point::When::Begin ? fault : fault_when_happened;
  }
};

}  // namespace stag::testing
