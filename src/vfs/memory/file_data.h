// FileData: the bytes of one file in memory, in extents that do not change while another reference
// to them exists. A read yields references and copies no byte. A write replaces the extents that it
// covers; a small write changes the present extent if no reference to it exists, so that no reader
// can notice. Thus a Buffer on its way to a peer never changes.
//
// Memory stays within a small multiple of stored(), whatever a peer sends: of a slice that is less
// than a quarter of its block (of a receive buffer, or of another file's extent) a copy is kept, as
// it would keep all of the block; what is used of a block moves to blocks of its own when it is
// less than a quarter; and a stretch of 64 KiB has at most 17 extents before it is copied together.
//
// A change is made whole, or it throws std::bad_alloc and nothing has changed: what is new is made
// first, and changes places with what is there without asking for memory. Where there is none to
// copy little used blocks or short extents together, they stay.
//
// Not synchronised; the store has locked the file's shard.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "base/inline_vector.h"
#include "base/rope.h"

namespace stag::vfs::memory {

// A buffer that extents of one file lie in.
struct Source {
  Buffer buffer;
  std::uint64_t origin = 0;  // where its first byte was written to in the file
  std::size_t live = 0;      // how many of its bytes are still in use
};
using SourceRef = std::shared_ptr<Source>;

// `length` bytes of the source from `start`.
struct Extent {
  SourceRef source;
  std::size_t start = 0;
  std::size_t length = 0;
};
using Extents = std::map<std::uint64_t, Extent>;  // by offset in the file

// The extents that a write replaced, to be destroyed after the caller has unlocked the shard.
struct Replaced {
  std::multimap<std::uint64_t, Extent> extents;
  InlineVector<Buffer, 8> buffers;
};

// Below this many bytes a piece is copied rather than kept as it is.
inline constexpr std::size_t kAdoptFrom = 8 * 1024;
// The form in which write() keeps `data`: large owned pieces as they are, all others copied, and
// those that would keep a block four times their size.
Rope adoptable(Rope data);
// Adds `data`, which comes from adoptable(), as it will lie in the file from `offset` on.
void add(Extents& to, std::uint64_t offset, const Rope& data);

class FileData {
 public:
  std::uint64_t size() const { return size_; }
  // Bytes that the file's extents count against Options::max_bytes.
  std::uint64_t stored() const { return stored_; }
  // How much of the range has storage already.
  std::uint64_t covered(std::uint64_t offset, std::uint64_t length) const;

  // The range must lie inside the file. Holes are zeros.
  Rope read(std::uint64_t offset, std::uint64_t length) const;
  // Overwrites the range in place if all of it has storage without other references; else false,
  // and nothing has changed.
  bool overwrite(std::uint64_t offset, const Rope& data);
  // `data` comes from adoptable() and is not empty; offset + size does not overflow.
  void write(std::uint64_t offset, const Rope& data, Replaced& replaced);
  // Puts the extents, which lie in the range and do not overlap, in the place of those that it has;
  // the size stays.
  void replace(std::uint64_t offset, std::uint64_t end, Extents&& extents, Replaced& replaced);
  // Makes slices of `block` the storage of what has none; the file reaches to `end` at least.
  void reserve(std::uint64_t offset, std::uint64_t end, const Buffer& block, Replaced& replaced);
  void resize(std::uint64_t size, Replaced& replaced);
  // Makes the range a hole; the size stays.
  void punch(std::uint64_t offset, std::uint64_t length, Replaced& replaced) {
    replace(offset, offset + length, {}, replaced);
  }
  // The first byte at or after `offset` that is stored, or is not; size() when there is none.
  std::uint64_t next_data(std::uint64_t offset) const;
  std::uint64_t next_hole(std::uint64_t offset) const;

 private:
  Rope gather(std::uint64_t offset, std::uint64_t length) const;
  Extents::const_iterator first_overlapping(std::uint64_t offset) const;
  bool take_over(std::uint64_t offset, const Buffer& buffer, Replaced& replaced);
  Extents splice(std::uint64_t offset, std::uint64_t end, Extents&& extents);
  void insert(Extents::const_iterator behind, Extents&& extents);
  void tidy(std::uint64_t offset, std::uint64_t end, const Extents& old,
            Replaced& replaced) noexcept;
  void thin_out(const SourceRef& little_used, Replaced& replaced);
  void copy_together(Extents::const_iterator at, std::uint64_t end, Replaced& replaced);
  void copy_window(std::uint64_t within, Replaced& replaced);

  Extents extents_;  // never overlapping, never empty
  std::uint64_t size_ = 0;
  std::uint64_t stored_ = 0;
};

}  // namespace stag::vfs::memory
