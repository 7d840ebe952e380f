// One work request of a send queue, before and after it is posted.
#pragma once

#include <array>
#include <vector>

#include "base/rope.h"
#include "fabric/fabric.h"
#include "fabric/verbs/block_pool.h"

namespace stag::fabric {

// SGEs of a request, at most; more pieces are copied together.
inline constexpr std::uint32_t kMostPieces = 6;

// Done: of a request that has ended before one that was posted earlier.
enum class WorkKind : std::uint8_t { Send, Write, Read, Bind, Invalidate, Marker, Done };

// What belongs to a request until the device has done with it.
struct PostedWork {
  WorkKind kind = WorkKind::Marker;
  std::uint32_t key = 0;  // Send: to invalidate, if it does; Bind, Invalidate: the window's
  Token token = kNoToken;
  RegisteredBlock* blocks = nullptr;  // linked
  ibv_mr* region = nullptr;           // registered for this request only
  Buffer source;                      // what lies in the region
  std::uint32_t read_length = 0;
  MutableBytes sink;  // Read: where the block's bytes go
};

// A request, and how to post it.
struct Work : PostedWork {
  bool inlined = false;
  bool invalidates = false;
  std::uint8_t pieces = 0;
  RemoteMemory remote;                      // Write, Read
  std::array<ibv_sge, kMostPieces> memory;  // the first `pieces`
  // Bind
  ibv_mw* window = nullptr;
  ibv_mw_bind_info binding;

  Work() {}  // Leaves the arrays as they are: most of them are not used.

  void add(std::byte* data, std::size_t size, std::uint32_t local_key) {
    memory[pieces++] = {reinterpret_cast<std::uintptr_t>(data), static_cast<std::uint32_t>(size),
                        local_key};
  }
};

// A queue in one piece of memory, which grows with what it holds and is used again.
template <class T>
class Ring {
 public:
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // The i-th from the front.
  T& operator[](std::size_t i) { return slots_[(first_ + i) & (slots_.size() - 1)]; }
  void push(T&& value) {
    if (size_ == slots_.size()) grow();
    (*this)[size_++] = std::move(value);
  }
  T pop() {
    T value = std::move((*this)[0]);
    drop();
    return value;
  }
  // The first, which has nothing to give back.
  void drop() {
    ++first_;
    --size_;
  }

 private:
  void grow() {
    std::vector<T> larger(slots_.empty() ? 8 : 2 * slots_.size());
    for (std::size_t i = 0; i < size_; ++i) larger[i] = std::move((*this)[i]);
    slots_ = std::move(larger);
    first_ = 0;
  }

  std::vector<T> slots_;  // a power of two
  std::size_t first_ = 0, size_ = 0;
};

}  // namespace stag::fabric
