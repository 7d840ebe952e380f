// One work request of a send queue, before and after it is posted.
#pragma once

#include <algorithm>
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
  RegisteredBlock* blocks = nullptr;  // linked; or one that other requests use, too
  ibv_mr* region = nullptr;           // registered for this request only
  Buffer source;                      // what lies in the region
  std::uint32_t length = 0;           // bytes that it moves, once it is posted
  MutableBytes sink;                  // Read: where the block's bytes go
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

// Requests of one queue that are posted in one call, in order.
class SendBatch {
 public:
  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == kMost; }
  void add(const ibv_send_wr& request) {
    ibv_send_wr& kept = requests_[size_];
    kept = request;
    kept.sg_list = memory_[size_].data();
    std::copy_n(request.sg_list, request.num_sge, kept.sg_list);
    if (size_ != 0) requests_[size_ - 1].next = &kept;
    ++size_;
  }
  // All that were added, and then `last`; none is left.
  ibv_send_wr* end_with(ibv_send_wr& last) {
    if (size_ == 0) return &last;
    requests_[size_ - 1].next = &last;
    return take();
  }
  ibv_send_wr* take() {
    size_ = 0;
    return requests_.data();
  }

 private:
  static constexpr std::size_t kMost = 16;
  std::array<ibv_send_wr, kMost> requests_;
  std::array<std::array<ibv_sge, kMostPieces>, kMost> memory_;
  std::size_t size_ = 0;
};

// A queue in one piece of memory, which grows with what it holds and is used again.
template <class T>
class Ring {
 public:
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // The i-th from the front.
  T& operator[](std::size_t i) { return slots_[(first_ + i) & mask_]; }
  bool full() const { return size_ == mask_ + 1; }
  // Not when it is full: the caller of push() calls grow() before, which may find no memory.
  void push(T&& value) { (*this)[size_++] = std::move(value); }
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

  void grow() {
    std::vector<T> larger(slots_.empty() ? 8 : 2 * slots_.size());
    for (std::size_t i = 0; i < size_; ++i) larger[i] = std::move((*this)[i]);
    slots_ = std::move(larger);
    mask_ = slots_.size() - 1;
    first_ = 0;
  }

 private:
  std::vector<T> slots_;                             // a power of two
  std::size_t mask_ = static_cast<std::size_t>(-1);  // for an index in slots_
  std::size_t first_ = 0, size_ = 0;
};

}  // namespace stag::fabric
