#include "base/rope.h"

#include <algorithm>
#include <cstring>

namespace stag {

Rope Rope::slice(std::size_t offset, std::size_t length) const {
  STAG_CHECK(offset <= size_ && length <= size_ - offset);
  Rope part;
  for (const Buffer& piece : pieces_) {
    if (length == 0) break;
    if (offset >= piece.size()) {
      offset -= piece.size();
      continue;
    }
    const std::size_t taken = std::min(length, piece.size() - offset);
    part.append(piece.slice(offset, taken));
    length -= taken;
    offset = 0;
  }
  return part;
}

void Rope::copy_to(MutableBytes to) const {
  STAG_CHECK(to.size() >= size_);
  std::size_t at = 0;
  for (const Buffer& piece : pieces_) {
    std::memcpy(to.data() + at, piece.data(), piece.size());
    at += piece.size();
  }
}

Buffer Rope::flatten() const {
  if (pieces_.empty()) return {};
  if (pieces_.size() == 1) return pieces_.front();
  Block block = Block::allocate(size_);
  copy_to(block.bytes());
  return std::move(block).freeze(size_);
}

bool operator==(const Rope& a, const Rope& b) {
  if (a.size_ != b.size_) return false;
  const Buffer left = a.flatten(), right = b.flatten();
  return a.size_ == 0 || std::memcmp(left.data(), right.data(), a.size_) == 0;
}

}  // namespace stag
