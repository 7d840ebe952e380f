// Bytes with an owner. A Buffer is an immutable, reference-counted slice: bytes on their way to a
// peer never change and stay until they have left. A Block is the writable form with one owner,
// until freeze() makes a Buffer of it. Small Blocks come from per-thread free lists by size class,
// large ones from pages that the process keeps, so that a steady flow of
// calls allocates nothing. Threads may share Buffers; a Block belongs to one thread at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"

namespace stag {

// The reference count that keeps bytes alive. A derived class says in release() how the bytes are
// given back.
class Storage {
 public:
  // Adds one reference. Thread: any that holds a reference.
  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  // Gives up one reference; the last one calls release(). Thread: any. A holder that reads a count
  // of one needs no atomic subtraction: no other holder exists that could add a reference.
  void drop() noexcept {
    if (references_.load(std::memory_order_acquire) == 1 ||
        references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      release();
  }
  // Whether the caller holds the only reference and the bytes are writable memory. Acquires: reads
  // of former holders happened before.
  bool exclusive() const noexcept {
    return block_size_ != 0 && references_.load(std::memory_order_acquire) == 1;
  }
  // Bytes of memory that go back with the last reference; 0: it is not known how many.
  std::size_t block_size() const noexcept { return block_size_; }

 protected:
  // `block_size` is not 0: it has so much memory, which the only holder may write.
  explicit Storage(std::size_t block_size = 0) : block_size_(block_size) {}
  ~Storage() = default;
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  // Called when no reference is left, on the thread that dropped the last one. May begin a new life
  // with one reference by revive().
  virtual void release() noexcept = 0;
  void revive() noexcept { references_.store(1, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint32_t> references_{1};
  const std::size_t block_size_;
};

// An immutable slice of bytes and one reference to their Storage. Copies share the bytes.
class Buffer {
 public:
  static constexpr bool kMovesAsBytes = true;  // base/inline_vector.h

  Buffer() = default;
  // Takes over one reference of `owner`. Null: the bytes are borrowed and outlive every use (static
  // bytes, or the caller's promise).
  Buffer(Storage* owner, Bytes bytes) : owner_(owner), bytes_(bytes) {}
  static Buffer borrow(Bytes bytes) { return Buffer(nullptr, bytes); }
  // Throws std::bad_alloc when there is no memory for the copy.
  static Buffer copy_of(Bytes bytes);

  Buffer(const Buffer& other) : owner_(other.owner_), bytes_(other.bytes_) {
    if (owner_ != nullptr) owner_->retain();
  }
  Buffer(Buffer&& other) noexcept
      : owner_(std::exchange(other.owner_, nullptr)), bytes_(std::exchange(other.bytes_, {})) {}
  Buffer& operator=(Buffer other) noexcept {
    std::swap(owner_, other.owner_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Buffer() {
    if (owner_ != nullptr) owner_->drop();
  }

  Bytes bytes() const { return bytes_; }
  const std::byte* data() const { return bytes_.data(); }
  std::size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  // False for borrowed bytes: code that keeps them beyond the call that lent them must copy them.
  bool owned() const { return owner_ != nullptr; }
  // For code that knows a Storage of its own kind; null: borrowed bytes.
  const Storage* owner() const { return owner_; }
  // Bytes of memory that one reference keeps, however short the slice is: those of the whole Block.
  // 0 when that is not known: borrowed bytes, or an owner of another kind.
  std::size_t block_size() const { return owner_ == nullptr ? 0 : owner_->block_size(); }
  // The same bytes, writable, when they came from a Block and no other Buffer shares that Block;
  // else an empty span. No other Buffer can come to share the Block but as a copy of this one.
  MutableBytes exclusive() {
    if (owner_ == nullptr || !owner_->exclusive()) return {};
    return {const_cast<std::byte*>(bytes_.data()), bytes_.size()};
  }

  // Shares the bytes [offset, offset + length), which must lie inside.
  Buffer slice(std::size_t offset, std::size_t length) const {
    STAG_CHECK(offset <= size() && length <= size() - offset);
    Buffer part(*this);
    part.bytes_ = bytes_.subspan(offset, length);
    return part;
  }

 private:
  Storage* owner_ = nullptr;
  Bytes bytes_;
};

// Writable bytes with one owner.
class Block {
 public:
  Block() = default;
  // At least `capacity` writable bytes, contents undefined. Throws std::bad_alloc when there is no
  // memory for them.
  static Block allocate(std::size_t capacity);
  // The same for callers that can do without: an empty Block when there is no memory.
  static Block try_allocate(std::size_t capacity) noexcept;
  Block(Block&& other) noexcept
      : owner_(std::exchange(other.owner_, nullptr)), bytes_(std::exchange(other.bytes_, {})) {}
  Block& operator=(Block&& other) noexcept {
    std::swap(owner_, other.owner_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Block() {
    if (owner_ != nullptr) owner_->drop();
  }

  // False when empty.
  explicit operator bool() const { return owner_ != nullptr; }
  MutableBytes bytes() const { return bytes_; }
  std::byte* data() const { return bytes_.data(); }
  std::size_t capacity() const { return bytes_.size(); }

  // Makes a Buffer of the first `length` bytes (at most capacity()), which are immutable from here
  // on; the Block is empty afterwards.
  Buffer freeze(std::size_t length) && {
    STAG_CHECK(length <= bytes_.size());
    return Buffer(std::exchange(owner_, nullptr), Bytes(std::exchange(bytes_, {})).first(length));
  }

 private:
  Block(Storage* owner, MutableBytes bytes) : owner_(owner), bytes_(bytes) {}
  Storage* owner_ = nullptr;
  MutableBytes bytes_;
};

}  // namespace stag
