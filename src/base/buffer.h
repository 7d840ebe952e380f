// Bytes with an owner. A Buffer is an immutable, reference-counted slice: what is on its way to a
// peer never changes and never goes away before it has left. A Block is the only writable form,
// owned by one, until it is frozen into a Buffer. Small Blocks come from per-thread free lists by
// size class, large ones from pages the process keeps (base/large_blocks.h), so a steady flow of
// calls allocates nothing. Buffers may be shared between threads; a Block belongs to one.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"

namespace stag {

// What keeps bytes alive. Whoever made it decides in release() how it ends.
class Storage {
 public:
  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  // The last holder needs no atomic subtraction: nobody else is there to add to it.
  void drop() noexcept {
    if (references_.load(std::memory_order_acquire) == 1 ||
        references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      release();
  }
  // Whether its only holder may write the bytes. Acquires what those who dropped it have read.
  bool exclusive() const noexcept {
    return writable_ && references_.load(std::memory_order_acquire) == 1;
  }

 protected:
  // `writable`: its bytes are memory that whoever is its only holder may write.
  explicit Storage(bool writable = false) : writable_(writable) {}
  ~Storage() = default;
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  // Called without a holder; may make itself the storage of a new one, by revive().
  virtual void release() noexcept = 0;
  void revive() noexcept { references_.store(1, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint32_t> references_{1};
  const bool writable_;
};

class Buffer {
 public:
  Buffer() = default;
  // Takes over one reference of `owner`; null means the bytes outlive every use (static, or the
  // caller's promise).
  Buffer(Storage* owner, Bytes bytes) : owner_(owner), bytes_(bytes) {}
  static Buffer borrow(Bytes bytes) { return Buffer(nullptr, bytes); }
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
  // Borrowed bytes have no owner: who keeps them beyond the call that lent them must copy.
  bool owned() const { return owner_ != nullptr; }
  // The same bytes to be written again, when they came from a Block and no other Buffer shares it;
  // else nothing. Nobody can begin to share it but through this Buffer.
  MutableBytes exclusive() {
    if (owner_ == nullptr || !owner_->exclusive()) return {};
    return {const_cast<std::byte*>(bytes_.data()), bytes_.size()};
  }

  // The range must lie inside.
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

class Block {
 public:
  Block() = default;
  // At least `capacity` writable bytes, contents undefined. Throws std::bad_alloc when there is no
  // memory for them.
  static Block allocate(std::size_t capacity);
  // The same for whoever can do without: an empty Block when there is no memory.
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

  explicit operator bool() const { return owner_ != nullptr; }
  MutableBytes bytes() const { return bytes_; }
  std::byte* data() const { return bytes_.data(); }
  std::size_t capacity() const { return bytes_.size(); }

  // The first `length` bytes, immutable from here on; the Block is empty afterwards.
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
