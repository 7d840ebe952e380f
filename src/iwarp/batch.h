// FPDUs on their way to the socket: a list of byte ranges to gather, with owners that keep them
// alive until they are written. Headers, pads, CRCs and markers lie in the batch's own block, which
// goes back to its pool as soon as everything is written; idle connections hold none.
#pragma once

#include <cstdint>
#include <span>

#include "base/buffer.h"
#include "base/inline_vector.h"
#include "base/rope.h"

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
};

}  // namespace stag::iwarp
