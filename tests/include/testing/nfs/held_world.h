// A client of version 4 that opens files and locks parts of them (nfs4_client_world.h).
#pragma once

#include <gtest/gtest.h>

#include <array>

#include "testing/nfs/nfs4_client_world.h"

namespace stag::testing {

struct HeldWorld : Nfs4ClientWorld {
  using Nfs4ClientWorld::Nfs4ClientWorld;

  static constexpr std::uint32_t kBoth = nfs::client::access::kRead | nfs::client::access::kModify;
  static constexpr nfs::client::LockOwner kMine{1, 1};
  static constexpr nfs::client::LockOwner kYours{1, 2};
  static constexpr nfs::client::FileLock kTen{0, 10, true};
  static constexpr nfs::client::FileLock kAll{0, 0, true};

  template <class T>
  T must(Task<nfs::client::Outcome<T>> task) {
    nfs::client::Outcome<T> outcome = run(std::move(task));
    if (!outcome) ADD_FAILURE() << outcome.error().sentence;
    return outcome ? std::move(*outcome) : T{};
  }
};

}  // namespace stag::testing
