// One copy that goes on, as Offloads keeps it.
#pragma once

#include <atomic>

#include "base/cancel.h"
#include "nfs/v4/ops/offloads.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

struct Offloads::Job {
  Job(OffloadedCopy&& of, const state::Stateid& named)
      : work(std::move(of)),
        stateid(named),
        to(work.copy.to().key()),
        count(work.copy.count()),
        awaited(work.source.has_value()) {}

  // The connection that asked for it may go.
  void go_on_at(Loop& home) {
    work.copy.go_on_at(home, work.life.get());
    work.origin.loop = &home;
    work.origin.connection = nullptr;
    work.origin.reverse.reset();
  }

  OffloadedCopy work;
  const state::Stateid stateid;
  const state::FileKey to;
  std::atomic<std::uint64_t> count;
  std::atomic<bool> cancelled{false};
  // On home, of a copy from another server: what it waits for there.
  CancelSource waits{};
  TimePoint began{};
  // Under the mutex of Offloads:
  std::optional<v4::nfsstat4> complete{};
  UniqueFunction<void()> stopped{};  // when it was cancelled, and writes no more
  bool awaited;                      // by its COPY, which is not answered yet
  bool answerable = false;
  UniqueFunction<void()> ready{};  // when it is answerable
};

}  // namespace stag::nfs::nfs4
