// FPDUs on their way to the socket: a list of byte ranges to gather, with owners that keep them
// alive until they are written. Headers, pads, CRCs, markers and short messages lie in the batch's
// own blocks, which go back to their pool as soon as everything is written. A connection that has
// sent anything keeps one small block, so that a few short messages at a time ask for none.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "base/buffer.h"
#include "base/inline_vector.h"

namespace stag::iwarp {

class Batch {
 public:
  // What is left to write, in order; the first range is already cut to its unwritten part.
  std::span<const Bytes> unsent() const {
    return {ranges_.data() + first_, ranges_.size() - first_};
  }
  std::size_t bytes_left() const { return bytes_left_; }
  bool empty() const { return bytes_left_ == 0; }
  // `count` bytes of unsent() have left.
  void sent(std::size_t count) {
    STAG_CHECK(count <= bytes_left_);
    bytes_left_ -= count;
    if (bytes_left_ == 0) return clear();
    sent_part(count);
  }
  // Copies every range without an owner (registered memory) that is left, so that the memory can be
  // given back although its bytes are still to be written. At most bytes_left() bytes.
  void take_private_copies();
  // Forgets everything; the connection is gone.
  void clear();
  // Bytes that ever went in and ever left. A message is written when written() has reached what
  // appended() was behind its last FPDU.
  std::uint64_t appended() const { return appended_; }
  std::uint64_t written() const { return appended_ - bytes_left_; }

  // For the Sender.
  //
  // `size` contiguous writable bytes of the batch's own, when it has_room() for them.
  std::byte* take(std::size_t size) {
    if (size > left_in_block_) add_block(size);
    left_in_block_ -= size;
    return std::exchange(next_, next_ + size);
  }
  // Whether `size` bytes more can be taken, at once or piece by piece; at most a first block.
  bool has_room(std::size_t size) const {
    return blocks_.size() < kMostBlocks || size <= left_in_block_;
  }
  std::size_t ranges() const { return ranges_.size() - first_; }
  // Appends bytes that take() gave.
  [[gnu::always_inline]] void append_own(Bytes bytes) {
    if (extends_last(bytes))
      ranges_.back() = Bytes(ranges_.back().data(), ranges_.back().size() + bytes.size());
    else
      ranges_.push_back(bytes);
    bytes_left_ += bytes.size();
    appended_ += bytes.size();
  }
  // Both at once: appends `size` bytes, to be written before anything else is done.
  [[gnu::always_inline]] std::byte* add_own(std::size_t size) {
    std::byte* const start = take(size);
    append_own(Bytes(start, size));
    return start;
  }
  void append(Buffer payload);

 private:
  // What keeps the bytes of a range alive that lie outside blocks_.
  struct Owner {
    std::size_t range = 0;
    Buffer buffer;
  };
  static constexpr std::size_t kMostBlocks = 5;

  void sent_part(std::size_t count);
  void add_block(std::size_t least);
  void fill_from(const Block& block) {
    next_ = block.data();
    left_in_block_ = block.capacity();
  }
  // The trailer of one FPDU and the header of the next lie side by side: one range for both.
  bool extends_last(Bytes bytes) const {
    const bool last_is_own = owners_.empty() || owners_.back().range + 1 != ranges_.size();
    return ranges() > 0 && last_is_own &&
           ranges_.back().data() + ranges_.back().size() == bytes.data();
  }

  Block small_;                    // filled first; kept
  InlineVector<Block, 2> blocks_;  // the others, until everything is written
  std::byte* next_ = nullptr;      // of the block being filled, what is not taken
  std::size_t left_in_block_ = 0;  // bytes from there on
  InlineVector<Bytes, 8> ranges_;
  std::size_t first_ = 0;          // the first range that is not written
  InlineVector<Owner, 8> owners_;  // in the order of their ranges
  std::size_t first_owner_ = 0;    // of a range that is not written
  std::size_t bytes_left_ = 0;
  std::uint64_t appended_ = 0;
};

}  // namespace stag::iwarp
