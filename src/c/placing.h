// Where a C server has the bulk of arguments placed: memory that its program gives for one call
// (stag_place), or none.
//
// Thread: the call's loop. Ownership: the memory is the library's until the last reference to the
// Buffer has gone, which the transport keeps while anything may write there; then `release` of the
// program is called.
#pragma once

#include "base/buffer.h"
#include "base/rope.h"
#include "c/stag.h"
#include "endpoint/loops.h"

namespace stag::c {

// The release_context of memory in which the program had `bytes` placed; null: they lie elsewhere.
void* placed_context(const Buffer& bytes);

class Placer {
 public:
  // `place` may be null.
  Placer(stag_place* place, void* context) : place_(place), context_(context) {}

  explicit operator bool() const { return place_ != nullptr; }
  // Memory for `length` bytes, not 0, of a call with these arguments; exclusive. Without an owner:
  // the program has none, or there is no memory for its record here. `loops` are the server's.
  Buffer ask(std::uint32_t procedure, Bytes arguments, std::size_t length,
             const endpoint::Loops& loops) const noexcept;
  // `data` in such memory; where there is none, in one piece as it is.
  Buffer copy(std::uint32_t procedure, Bytes arguments, const Rope& data,
              const endpoint::Loops& loops) const;

 private:
  stag_place* place_;
  void* context_;
};

}  // namespace stag::c
