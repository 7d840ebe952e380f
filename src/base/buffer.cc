#include "base/buffer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <new>

#include "base/large_blocks.h"
#include "base/poison.h"

namespace stag {
namespace {

// Size classes 256 B, 512 B, ... 64 KiB; anything larger has pages of its own.
constexpr std::size_t kSmallestBits = 8;
constexpr std::size_t kClasses = 9;
constexpr std::size_t kLargest = std::size_t{1} << (kSmallestBits + kClasses - 1);
// How much one thread keeps for its next calls.
constexpr std::size_t kMostKeptByThread = 4 << 20;

// The first class with room for so many bytes.
constexpr std::size_t size_class_of(std::size_t capacity) {
  const std::size_t last = capacity - (capacity != 0);
  return static_cast<std::size_t>(63 -
                                  std::countl_zero(std::uint64_t{last} >> (kSmallestBits - 1) | 1));
}
static_assert(size_class_of(0) == 0 && size_class_of(256) == 0 && size_class_of(257) == 1 &&
              size_class_of(kLargest) == kClasses - 1);
class PooledStorage;

// What a thread keeps, by class. Made at compile time, so that no call has to check whether it
// exists; full, so that nothing is kept, but during its PoolLifetime.
struct Pool {
  std::array<PooledStorage*, kClasses> lists{};
  std::size_t kept = kMostKeptByThread;  // bytes
};
constinit thread_local Pool pool;

// From the first block that a thread makes to its end.
struct PoolLifetime {
  PoolLifetime() { pool.kept = 0; }
  ~PoolLifetime();
};

class PooledStorage final : public Storage {
 public:
  // Null when there is no memory.
  static PooledStorage* create(std::size_t size_class) noexcept {
    const std::size_t capacity = std::size_t{1} << (kSmallestBits + size_class);
    static thread_local const PoolLifetime lifetime;
    void* memory = ::operator new(sizeof(PooledStorage) + capacity, std::nothrow);
    return memory == nullptr ? nullptr : new (memory) PooledStorage(size_class, capacity);
  }
  MutableBytes bytes() { return {reinterpret_cast<std::byte*>(this + 1), block_size()}; }
  static void destroy(PooledStorage* storage) {
    unpoison(storage->bytes().data(), storage->block_size());
    storage->~PooledStorage();
    ::operator delete(storage);
  }

  void take_again() {
    unpoison(bytes().data(), block_size());
    revive();
  }
  PooledStorage* next = nullptr;

 private:
  PooledStorage(std::size_t size_class, std::size_t capacity)
      : Storage(capacity), size_class_(size_class) {}

  void release() noexcept override {
    if (pool.kept + block_size() > kMostKeptByThread) return destroy(this);
    next = std::exchange(pool.lists[size_class_], this);
    pool.kept += block_size();
    poison(bytes().data(), block_size());
  }

  const std::size_t size_class_;
};

PoolLifetime::~PoolLifetime() {
  for (PooledStorage*& head : pool.lists)
    while (head != nullptr) PooledStorage::destroy(std::exchange(head, head->next));
  pool.kept = kMostKeptByThread;
}

// One that the thread has kept, if it has.
inline PooledStorage* take_kept(std::size_t size_class) noexcept {
  PooledStorage*& head = pool.lists[size_class];
  if (head == nullptr) return nullptr;
  PooledStorage* const storage = std::exchange(head, head->next);
  pool.kept -= storage->block_size();
  storage->take_again();
  return storage;
}

// At the start of its pages, the bytes behind it.
class alignas(64) PageStorage final : public Storage {
 public:
  // Null when there is no memory.
  static PageStorage* create(std::size_t capacity) noexcept {
    if (capacity > std::numeric_limits<std::ptrdiff_t>::max() / 2) return nullptr;
    const Pages pages = take_pages(sizeof(PageStorage) + capacity);
    return pages.memory == nullptr ? nullptr : new (pages.memory) PageStorage(pages.bytes);
  }
  MutableBytes bytes() {
    return {reinterpret_cast<std::byte*>(this + 1), block_size() - sizeof(PageStorage)};
  }

 private:
  explicit PageStorage(std::size_t page_bytes) : Storage(page_bytes) {}
  void release() noexcept override {
    const Pages pages{this, block_size()};
    this->~PageStorage();
    give_pages(pages);
  }
};

}  // namespace

namespace {
// Apart, so that what the thread has kept is found without a detour.
[[gnu::noinline, gnu::cold]] Block allocate_anew(std::size_t capacity) {
  Block block = Block::try_allocate(capacity);
  if (!block) throw std::bad_alloc();
  return block;
}
}  // namespace

Block Block::try_allocate(std::size_t capacity) noexcept {
  if (capacity <= kLargest) {
    const std::size_t size_class = size_class_of(capacity);
    PooledStorage* storage = take_kept(size_class);
    if (storage == nullptr) storage = PooledStorage::create(size_class);
    return storage == nullptr ? Block() : Block(storage, storage->bytes());
  }
  PageStorage* const storage = PageStorage::create(capacity);
  return storage == nullptr ? Block() : Block(storage, storage->bytes());
}

Block Block::allocate(std::size_t capacity) {
  if (capacity <= kLargest)
    if (PooledStorage* const kept = take_kept(size_class_of(capacity)))
      return Block(kept, kept->bytes());
  return allocate_anew(capacity);
}

Buffer Buffer::copy_of(Bytes bytes) {
  if (bytes.empty()) return {};
  Block block = Block::allocate(bytes.size());
  std::memcpy(block.data(), bytes.data(), bytes.size());
  return std::move(block).freeze(bytes.size());
}

}  // namespace stag
