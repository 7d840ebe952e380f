// Client and server of NFS on RPC-over-RDMA on software iWARP over loopback, in one thread: what
// can be counted there - allocations, instructions - is of a call as it is served, and repeats.
#pragma once

#include <memory>

#include "bench/load/operation.h"
#include "rpc/observer.h"

namespace stag::bench {

// The version of the operations, and what the server serves.
enum class Versions : std::uint8_t { Nfs3, Nfs3BesideNfs4, Nfs4, Nfs42 };

// Made, used and destroyed on a thread that is no loop's.
class IwarpWorld {
 public:
  // `observer` is told of the calls, as of `stag serve`; null: nobody is. It outlives this.
  explicit IwarpWorld(Versions versions = Versions::Nfs3, rpc::Observer* observer = nullptr);
  ~IwarpWorld();
  IwarpWorld(const IwarpWorld&) = delete;

  // Blocks. `count` operations, `depth` of them at a time; false when one failed.
  bool run(Operation operation, std::uint64_t count, unsigned depth);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stag::bench
