// Rope: bytes that lie in several Buffers, in order. Large opaques travel as Ropes, so that no
// layer copies their pieces together. Copies share the bytes. Thread: as Buffer.
#pragma once

#include "base/buffer.h"
#include "base/inline_vector.h"

namespace stag {

class Rope {
 public:
  using Pieces = InlineVector<Buffer, 2>;

  Rope() {}  // like InlineVector's
  Rope(Buffer buffer) { append(std::move(buffer)); }
  static Rope borrow(Bytes bytes) { return Rope(Buffer::borrow(bytes)); }
  static Rope copy_of(Bytes bytes) { return Rope(Buffer::copy_of(bytes)); }

  // Shares the bytes of the argument; an empty one adds no piece.
  void append(Buffer buffer) {
    if (buffer.empty()) return;
    const std::size_t size = buffer.size();
    pieces_.push_back(std::move(buffer));
    size_ += size;
  }
  void append(const Rope& other) {
    for (const Buffer& piece : other.pieces_) append(piece);
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const Pieces& pieces() const { return pieces_; }

  // Shares the bytes [offset, offset + length), which must lie inside.
  Rope slice(std::size_t offset, std::size_t length) const;
  // Copies all bytes to the start of `to`, which holds at least size() bytes.
  void copy_to(MutableBytes to) const;
  // All bytes in one piece: the piece itself when there is only one, else a copy.
  Buffer flatten() const;

  // Compares the bytes, however they are cut into pieces.
  friend bool operator==(const Rope& a, const Rope& b);

 private:
  Pieces pieces_;
  std::size_t size_ = 0;
};

}  // namespace stag
