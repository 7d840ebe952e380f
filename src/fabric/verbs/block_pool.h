// Blocks of one size in registered memory, for messages that are copied and for receives. They have
// no remote rights. The pool grows in slabs; of those that nobody uses any more it keeps some for
// the next ones, and gives the others back.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "fabric/verbs/verbs_functions.h"

namespace stag::fabric {

class SharedReceives;
struct RegisteredSlab;

struct RegisteredBlock {
  std::byte* data = nullptr;
  std::uint32_t key = 0;             // L_Key
  std::uint32_t users = 0;           // of a send block: the requests whose bytes it has
  SharedReceives* shared = nullptr;  // where it is posted; null: as a queue pair's own
  RegisteredBlock* next = nullptr;
  RegisteredSlab* slab = nullptr;
};

// Blocks that are registered together.
struct RegisteredSlab {
  std::unique_ptr<std::byte[]> memory;
  std::vector<RegisteredBlock> blocks;
  ibv_mr* region = nullptr;
  RegisteredBlock* free = nullptr;  // linked
  std::size_t free_count = 0;
  std::list<std::unique_ptr<RegisteredSlab>>::iterator self;
};

class BlockPool {
 public:
  // `pd` outlives the pool.
  BlockPool(const VerbsFunctions& functions, ibv_pd* pd, std::size_t block_size)
      : functions_(functions), pd_(pd), block_size_(block_size) {}
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  std::size_t block_size() const { return block_size_; }
  // Makes sure that `count` blocks are free; fails with VerbsMemlockTooLow or OutOfMemory.
  Result<Ok, Reason> reserve(std::size_t count);
  // Null when there is no memory for more.
  RegisteredBlock* take();
  void give(RegisteredBlock* block);

 private:
  Result<Ok, Reason> grow(std::size_t count);

  const VerbsFunctions& functions_;
  ibv_pd* const pd_;
  const std::size_t block_size_;
  // Those with free blocks first. A slab that gets its first free block back goes to the front, so
  // that blocks come from slabs in use, and the others become free as a whole.
  std::list<std::unique_ptr<RegisteredSlab>> slabs_;
  std::size_t free_count_ = 0;
};

}  // namespace stag::fabric
