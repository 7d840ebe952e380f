// A protection domain and what is registered in it: blocks for sends and receives, shared receive
// queues, memory windows. Where the device has windows, which belong to one queue pair each, all
// connections of a loop share a domain; elsewhere a connection has its own, for there a key opens
// memory to every queue pair of its domain.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "base/result.h"
#include "fabric/verbs/block_pool.h"
#include "fabric/verbs/counted_region.h"
#include "fabric/verbs/device_traits.h"
#include "fabric/verbs/kept_regions.h"

namespace stag::fabric {

// Room in a completion queue.
struct Completions {
  ibv_cq* queue = nullptr;
  std::uint32_t entries = 0;
};

// Receives that the queue pairs of a domain share. At least as many are posted as their owners
// reserve, each no more than it was admitted with.
class SharedReceives {
 public:
  static Result<std::unique_ptr<SharedReceives>, Reason> make(const VerbsFunctions& functions,
                                                              ibv_pd* pd, std::size_t block_size,
                                                              std::uint32_t capacity);
  ~SharedReceives();

  ibv_srq* queue() const { return queue_; }
  // What is lost stays registered: a queue that has lost much takes nobody new, and goes with the
  // last one that uses it.
  bool has_room_for(std::uint32_t count) const {
    return admitted_ + count + suspected_ + lost_ <= capacity_;
  }
  void admit(std::uint32_t count) { admitted_ += count; }
  Result<Ok, Reason> reserve(std::uint32_t count);
  // The end of one that was admitted.
  void leave(std::uint32_t admitted, std::uint32_t reserved) {
    admitted_ -= admitted;
    wanted_ -= reserved;
  }
  // A queue pair was destroyed that may have had a receive. Whether it had shows when the device
  // says that there are few. Asks for no memory.
  void suspect_loss();
  // The device says so, and all that has completed was delivered.
  void on_low();
  bool unused() const { return admitted_ == 0; }
  std::size_t block_size() const { return pool_.block_size(); }
  // A receive has completed and its bytes have been used.
  void consumed(RegisteredBlock* block);
  std::uint32_t capacity() const { return capacity_; }
  // Where they all complete, so that one queue pair that takes them all overruns nothing. Set by
  // the first who uses this.
  Completions completions;

 private:
  static constexpr std::uint32_t kTogether = 16;

  SharedReceives(const VerbsFunctions& functions, ibv_pd* pd, std::size_t block_size,
                 std::uint32_t capacity)
      : functions_(functions), capacity_(capacity), pool_(functions, pd, block_size) {}
  // Some more than are reserved, so that used ones are posted again several at a time.
  std::uint32_t target() const { return std::min(wanted_ + kTogether, capacity_); }
  // Posts until as many are as there should be, or the device takes no more.
  void fill();
  // Has the device say once when no more than half of what is reserved is left: a burst seldom
  // takes so much between two looks.
  void watch_low();
  // Up to `count` in one call; how many the device took.
  std::uint32_t post(std::uint32_t count);

  const VerbsFunctions& functions_;
  const std::uint32_t capacity_;
  ibv_srq* queue_ = nullptr;
  BlockPool pool_;
  std::uint32_t admitted_ = 0, wanted_ = 0, posted_ = 0;
  std::uint32_t suspected_ = 0, lost_ = 0, low_ = 0;
};

class Domain {
 public:
  static Result<std::shared_ptr<Domain>, Reason> make(const VerbsFunctions& functions,
                                                      ibv_context* context,
                                                      const DeviceTraits& traits);
  ~Domain();

  ibv_pd* pd() const { return pd_.get(); }
  BlockPool& send_blocks() { return send_blocks_; }
  // A shared queue of receives of at least `size` bytes with room for `count` more.
  Result<SharedReceives*, Reason> shared_receives(std::size_t size, std::uint32_t count);
  // The receives of that queue; null: it is none of these.
  SharedReceives* receives_of(const ibv_srq* queue);
  // The end of a queue of receives that no queue pair uses; null: there is none. Not while
  // completions are delivered, some of which may be of its receives. Its room in a completion queue
  // is its owner's again.
  std::unique_ptr<SharedReceives> take_unused_receives();
  // From now on memory that is kept is registered once; only where windows open it.
  void keep_regions() { kept_ = std::make_unique<KeptRegions>(functions_, pd()); }
  // The region of kept memory in which `memory` lies, until give_back(); null: there is none.
  ibv_mr* kept_region(const std::byte* memory, std::size_t size, bool writable) {
    return kept_ == nullptr ? nullptr : kept_->use(memory, size, writable);
  }
  bool keeps(const ibv_mr* region) const { return kept_ != nullptr && kept_->has(region); }
  // The end of a region, or of one use of it where it is kept.
  void give_back(ibv_mr* region) noexcept {
    if (kept_ == nullptr || !kept_->end_use(region)) deregister_memory(functions_, region);
  }
  // Null when the device has no more.
  ibv_mw* take_window();
  void give_window(ibv_mw* window);

 private:
  Domain(const VerbsFunctions& functions, ibv_pd* pd, const DeviceTraits& traits);

  const VerbsFunctions& functions_;
  // Given back last, after everything registered in it.
  struct PdDeleter {
    const VerbsFunctions* functions;
    void operator()(ibv_pd* pd) const { functions->dealloc_pd(pd); }
  };
  const std::unique_ptr<ibv_pd, PdDeleter> pd_;
  const DeviceTraits traits_;
  BlockPool send_blocks_;
  std::unique_ptr<KeptRegions> kept_;
  std::multimap<std::size_t, std::unique_ptr<SharedReceives>> receives_;  // by size of a block
  std::vector<ibv_mw*> windows_;                                          // free ones
};

}  // namespace stag::fabric
