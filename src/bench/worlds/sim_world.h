// Client and server of NFS on RPC-over-RDMA in one thread, on the simulated fabric, which stands
// for an adapter: what a call costs above the RDMA operations.
#pragma once

#include <memory>

#include "bench/load/operation.h"
#include "bench/load/sample.h"

namespace stag::bench {

class SimWorld {
 public:
  SimWorld();
  ~SimWorld();
  SimWorld(const SimWorld&) = delete;

  // `count` operations, `depth` of them at a time. False when one failed.
  bool run(Operation operation, std::uint64_t count, unsigned depth);
  // The same for so long; real time, not the simulated one.
  Sample run_for(Operation operation, double seconds, unsigned depth);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stag::bench
