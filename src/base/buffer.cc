#include "base/buffer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <new>

namespace stag {
namespace {

// Size classes 256 B, 512 B, ... 1 MiB; anything larger comes from the heap each time.
constexpr std::size_t kSmallest = 256;
constexpr std::size_t kClasses = 13;
constexpr std::size_t kLargest = kSmallest << (kClasses - 1);
// How much one thread keeps per class for its next calls.
constexpr std::size_t kKeptBytesPerClass = 4 << 20;
constexpr std::size_t kKeptBlocksPerClass = 256;

class PooledStorage;

struct FreeList {
  PooledStorage* head = nullptr;
  std::size_t count = 0;
};

struct Pool {
  std::array<FreeList, kClasses> lists;
  ~Pool();
};

constinit thread_local Pool* pool_of_thread = nullptr;

// Owned by the thread; blocks released after its destruction go straight back to the heap.
struct PoolLifetime {
  Pool pool;
  PoolLifetime() { pool_of_thread = &pool; }
  ~PoolLifetime() { pool_of_thread = nullptr; }
};

Pool* first_use() {
  thread_local PoolLifetime lifetime;
  return pool_of_thread;
}
// Null at the end of the thread.
Pool* thread_pool() {
  return pool_of_thread != nullptr ? pool_of_thread : first_use();
}

class PooledStorage final : public Storage {
 public:
  // Null when there is no memory.
  static PooledStorage* create(std::size_t capacity, std::size_t size_class) noexcept {
    if (capacity > std::numeric_limits<std::ptrdiff_t>::max() - sizeof(PooledStorage))
      return nullptr;
    void* memory = ::operator new(sizeof(PooledStorage) + capacity, std::nothrow);
    return memory == nullptr ? nullptr : new (memory) PooledStorage(capacity, size_class);
  }
  MutableBytes bytes() { return {reinterpret_cast<std::byte*>(this + 1), capacity_}; }
  static void destroy(PooledStorage* storage) {
    storage->~PooledStorage();
    ::operator delete(storage);
  }

  using Storage::revive;
  PooledStorage* next = nullptr;

 private:
  PooledStorage(std::size_t capacity, std::size_t size_class)
      : Storage(true), capacity_(capacity), size_class_(size_class) {}

  void release() noexcept override {
    Pool* pool = size_class_ < kClasses ? thread_pool() : nullptr;
    if (pool == nullptr) return destroy(this);
    FreeList& list = pool->lists[size_class_];
    if (list.count >= kKeptBlocksPerClass || list.count * capacity_ >= kKeptBytesPerClass)
      return destroy(this);
    next = list.head;
    list.head = this;
    ++list.count;
  }

  std::size_t capacity_;
  std::size_t size_class_;
};

Pool::~Pool() {
  for (FreeList& list : lists)
    while (list.head != nullptr) PooledStorage::destroy(std::exchange(list.head, list.head->next));
}

PooledStorage* take(std::size_t capacity) noexcept {
  if (capacity > kLargest) return PooledStorage::create(capacity, kClasses);
  const std::size_t rounded = std::bit_ceil(std::max(capacity, kSmallest));
  const auto size_class = static_cast<std::size_t>(std::countr_zero(rounded / kSmallest));
  Pool* pool = thread_pool();
  if (pool == nullptr || pool->lists[size_class].head == nullptr)
    return PooledStorage::create(rounded, size_class);
  FreeList& list = pool->lists[size_class];
  PooledStorage* storage = std::exchange(list.head, list.head->next);
  --list.count;
  storage->revive();
  return storage;
}

}  // namespace

Block Block::allocate(std::size_t capacity) {
  Block block = try_allocate(capacity);
  if (!block) throw std::bad_alloc();
  return block;
}

Block Block::try_allocate(std::size_t capacity) noexcept {
  PooledStorage* storage = take(capacity);
  return storage == nullptr ? Block() : Block(storage, storage->bytes());
}

Buffer Buffer::copy_of(Bytes bytes) {
  if (bytes.empty()) return {};
  Block block = Block::allocate(bytes.size());
  std::memcpy(block.data(), bytes.data(), bytes.size());
  return std::move(block).freeze(bytes.size());
}

}  // namespace stag
