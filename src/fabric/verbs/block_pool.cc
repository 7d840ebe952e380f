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
// Of free blocks, which the next burst finds registered.
constexpr std::size_t kKeptBytes = 4 << 20;
}  // namespace

BlockPool::~BlockPool() {
  for (const auto& slab : slabs_) deregister_memory(functions_, slab->region);
}

Result<Ok, Reason> BlockPool::reserve(std::size_t count) {
  return count <= free_count_ ? Result<Ok, Reason>(Ok{}) : grow(count - free_count_);
}

Result<Ok, Reason> BlockPool::grow(std::size_t count) try {
  std::list<std::unique_ptr<RegisteredSlab>> made;
  RegisteredSlab& slab = *made.emplace_back(std::make_unique<RegisteredSlab>());
  const std::size_t bytes = count * block_size_;
  slab.memory.reset(new std::byte[bytes]);
  slab.blocks.resize(count);
  slab.self = made.begin();
  slab.region = register_memory(functions_, pd_, slab.memory.get(), bytes, IBV_ACCESS_LOCAL_WRITE);
  if (slab.region == nullptr) return Failure{reason_of_registration_error(errno, bytes)};
  for (std::size_t i = 0; i < count; ++i) {
    RegisteredBlock& block = slab.blocks[i];
    block.data = slab.memory.get() + i * block_size_;
    block.key = slab.region->lkey;
    block.slab = &slab;
    block.next = std::exchange(slab.free, &block);
  }
  slab.free_count = count;
  free_count_ += count;
  slabs_.splice(slabs_.begin(), made);
  return Ok{};
} catch (const std::bad_alloc&) {
  return Failure{Reason::OutOfMemory};
}

RegisteredBlock* BlockPool::take() {
  if (free_count_ == 0 && !grow(kGrowth)) return nullptr;
  RegisteredSlab& slab = *slabs_.front();
  --free_count_;
  if (--slab.free_count == 0) slabs_.splice(slabs_.end(), slabs_, slab.self);
  return std::exchange(slab.free, slab.free->next);
}

void BlockPool::give(RegisteredBlock* block) {
  RegisteredSlab& slab = *block->slab;
  block->next = std::exchange(slab.free, block);
  ++free_count_;
  if (slab.free_count++ == 0) slabs_.splice(slabs_.begin(), slabs_, slab.self);
  if (slab.free_count < slab.blocks.size()) return;
  if ((free_count_ - slab.free_count) * block_size_ < kKeptBytes) return;
  free_count_ -= slab.free_count;
  deregister_memory(functions_, slab.region);
  slabs_.erase(slab.self);
}

}  // namespace stag::fabric
