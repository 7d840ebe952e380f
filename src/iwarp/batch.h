// FPDUs on their way to the socket: a list of byte ranges to gather, with owners that keep them
// alive until they are written. Headers, pads, CRCs, markers and short messages lie in the batch's
// own blocks, which go back to their pool as soon as everything is written; idle connections hold
// none.
#pragma once

#include <cstdint>
#include <span>

#include "base/buffer.h"
#include "base/inline_vector.h"

namespace stag::iwarp {

class Batch {
 public:
  // What is left to write, in order; the first range is already cut to its unwritten part.
  std::span<const Bytes> unsent() const;
  std::size_t bytes_left() const { return bytes_left_; }
  bool empty() const { return bytes_left_ == 0; }
  // `count` bytes of unsent() have left.
  void sent(std::size_t count);
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
  std::byte* take(std::size_t size);
  // Whether `size` bytes more can be taken, at once or piece by piece; at most kFirstBlock.
  bool has_room(std::size_t size) const;
  std::size_t ranges() const { return ranges_.size() - first_; }
  // Appends bytes that take() gave.
  void append_own(Bytes bytes);
  // Both at once: appends `size` bytes, to be written before anything else is done.
  std::byte* add_own(std::size_t size);
  void append(Buffer payload);

 private:
  // What keeps the bytes of a range alive that lie outside blocks_.
  struct Owner {
    std::size_t range = 0;
    Buffer buffer;
  };
  std::size_t left_in_block() const;

  InlineVector<Block, 2> blocks_;
  std::size_t taken_ = 0;  // bytes of the last block
  InlineVector<Bytes, 8> ranges_;
  std::size_t first_ = 0;          // the first range that is not written
  InlineVector<Owner, 8> owners_;  // in the order of their ranges
  std::size_t first_owner_ = 0;    // of a range that is not written
  std::size_t bytes_left_ = 0;
  std::uint64_t appended_ = 0;
};

}  // namespace stag::iwarp
