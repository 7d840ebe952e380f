// Record marking (RFC 5531 section 11): how RPC messages are separated on a byte stream. A record
// is one or more fragments, each a 32-bit header (highest bit: last fragment; the rest: length) and
// its bytes.
//
// The reader is pure and incremental: it returns the memory for the next bytes of the stream, and
// the caller reads straight into it. Records and fragments are bounded; memory grows with the bytes
// that have arrived, not with an announced length, so that a gigabyte of memory costs a peer a
// gigabyte sent.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/buffer.h"
#include "base/reason.h"
#include "base/result.h"
#include "oncrpc/record_limits.h"

namespace stag::oncrpc {

inline constexpr std::uint32_t kLastFragment = 0x80000000u;
inline constexpr std::uint32_t kRecordMarkSize = 4;

// The mark in front of a record that is one fragment; `length` < 2^31.
inline std::array<std::byte, kRecordMarkSize> record_mark(std::uint32_t length) {
  std::array<std::byte, kRecordMarkSize> mark{};
  store_be(mark.data(), length | kLastFragment);
  return mark;
}

class RecordReader {
 public:
  explicit RecordReader(RecordLimits limits = {}) : limits_(limits) {}

  // Consumes `bytes` of the stream from its front; returns how many, less than all only when a
  // record is complete (take() it, then go on) or the stream is broken.
  Result<std::size_t, Reason> feed(Bytes bytes);

  // Memory for the next bytes of the current fragment; empty when a fragment header is expected.
  // The caller fills the first `n` bytes of it and then calls placed(n), and no other function in
  // between.
  MutableBytes room();
  void placed(std::size_t n);

  // Longer records are taken from now on, with as many more fragments.
  void allow(std::uint32_t record);
  const RecordLimits& limits() const { return limits_; }

  bool complete() const { return complete_; }
  // The record that is complete; the reader starts on the next one.
  Buffer take();
  // Bytes of the record in progress: those that came, and those its last mark has announced.
  std::size_t announced() const { return used_ + fragment_left_; }
  // Those of the record in progress that came.
  Bytes begun() const { return Bytes(block_.bytes()).first(used_); }
  // Marks of the record in progress that came.
  std::uint32_t fragments() const { return fragments_; }
  // Whether a record has begun and is not complete.
  bool midway() const { return !complete_ && (mark_used_ > 0 || used_ > 0 || fragments_ > 0); }

 private:
  Reason begin_fragment();
  void end_of_fragment();
  void reserve(std::size_t wanted);

  RecordLimits limits_;
  std::array<std::byte, kRecordMarkSize> mark_{};
  std::uint32_t mark_used_ = 0;
  std::uint32_t fragment_left_ = 0;
  std::uint32_t fragments_ = 0;
  bool last_ = false;
  bool complete_ = false;
  Block block_;
  std::size_t used_ = 0;
};

}  // namespace stag::oncrpc
