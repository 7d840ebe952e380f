#include "fabric/verbs/block_pool.h"

#include <cerrno>
#include <new>
#include <utility>

#include "fabric/verbs/counted_region.h"
#include "fabric/verbs/verbs_reason.h"

namespace stag::fabric {
namespace {
// Blocks that a pool which has run out adds at once.
constexpr std::size_t kGrowth = 16;
}  // namespace

BlockPool::~BlockPool() {
  for (const Slab& slab : slabs_) deregister_memory(functions_, slab.region);
}

Result<Ok, Reason> BlockPool::reserve(std::size_t count) {
  return count <= free_count_ ? Result<Ok, Reason>(Ok{}) : grow(count - free_count_);
}

Result<Ok, Reason> BlockPool::grow(std::size_t count) try {
  Slab slab;
  const std::size_t bytes = count * block_size_;
  slab.memory.reset(new std::byte[bytes]);
  slab.blocks.resize(count);
  slabs_.reserve(slabs_.size() + 1);
  slab.region = register_memory(functions_, pd_, slab.memory.get(), bytes, IBV_ACCESS_LOCAL_WRITE);
  if (slab.region == nullptr) return Failure{reason_of_registration_error(errno, bytes)};
  for (std::size_t i = 0; i < count; ++i) {
    slab.blocks[i].data = slab.memory.get() + i * block_size_;
    slab.blocks[i].key = slab.region->lkey;
    give(&slab.blocks[i]);
  }
  slabs_.push_back(std::move(slab));
  return Ok{};
} catch (const std::bad_alloc&) {
  return Failure{Reason::OutOfMemory};
}

RegisteredBlock* BlockPool::take() {
  if (free_ == nullptr && !grow(kGrowth)) return nullptr;
  --free_count_;
  return std::exchange(free_, free_->next);
}

void BlockPool::give(RegisteredBlock* block) {
  block->next = std::exchange(free_, block);
  ++free_count_;
}

}  // namespace stag::fabric
