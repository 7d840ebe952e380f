// Memory that stays registered, with a remote right, as long as its connection lives: what is
// exposed is copied in before, and what the peer has written is copied out afterwards. Saves the
// system calls of a registration for each call. What it costs: the peer keeps its access. It may
// read what any earlier call of the connection has left in a region, and write into one that
// belongs to a later call meanwhile. Only where VerbsOptions::open_regions asks for it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "fabric/fabric.h"
#include "fabric/verbs/counted_region.h"
#include "fabric/verbs/verbs_functions.h"

namespace stag::fabric {

class OpenRegions {
 public:
  // `pd` is of this connection alone, and outlives this.
  OpenRegions(const VerbsFunctions& functions, ibv_pd* pd) : functions_(functions), pd_(pd) {}
  OpenRegions(const OpenRegions&) = delete;
  OpenRegions& operator=(const OpenRegions&) = delete;

  // A region with the bytes of `memory`, for the peer to read; of as many zeros, to be written.
  // RegistrationsExhausted where no more memory can be registered.
  Result<RemoteMemory, Reason> expose_source(Bytes memory);
  Result<RemoteMemory, Reason> expose_sink(MutableBytes memory);
  // The region is free for another call; all bytes of a sink are where they belong, zeros where the
  // peer has written nothing. False: it is none of these.
  bool take_back(std::uint32_t handle);

 private:
  // Regions have sizes of powers of two, from 4 KiB.
  static constexpr std::size_t kLeastBits = 12, kSizes = 20;
  struct Deregister {
    const VerbsFunctions* functions;
    void operator()(ibv_mr* region) const { deregister_memory(*functions, region); }
  };
  struct Region {
    std::unique_ptr<std::byte[]> memory;
    std::unique_ptr<ibv_mr, Deregister> region;
    MutableBytes sink;
    Region** free_list = nullptr;  // its own
    Region* next = nullptr;
    bool used = false;
  };
  using FreeLists = std::array<Region*, kSizes>;

  Result<Region*, Reason> take(FreeLists& lists, std::size_t size, int access);
  static RemoteMemory name_of(const Region& region, std::size_t size);

  const VerbsFunctions& functions_;
  ibv_pd* const pd_;
  FreeLists sources_{}, sinks_{};
  std::unordered_map<std::uint32_t, Region> regions_;  // by handle
};

}  // namespace stag::fabric
