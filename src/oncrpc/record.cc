#include "oncrpc/record.h"

#include <algorithm>

namespace stag::oncrpc {
namespace {
// Memory a fragment gets before any of its bytes have come, and at most per step after that: as
// much again as the record has already.
constexpr std::size_t kFirstRoom = 64 << 10;
// Bytes of a fragment in a long record, on average, that nobody goes below.
constexpr std::uint32_t kShortFragment = 1 << 10;
}  // namespace

Result<std::size_t, Reason> RecordReader::feed(Bytes bytes) {
  const std::size_t all = bytes.size();
  while (!complete_ && !bytes.empty()) {
    if (fragment_left_ > 0) {
      const MutableBytes to = room();
      const std::size_t n = std::min(to.size(), bytes.size());
      std::memcpy(to.data(), bytes.data(), n);
      bytes = bytes.subspan(n);
      placed(n);
      continue;
    }
    const std::size_t n = std::min<std::size_t>(kRecordMarkSize - mark_used_, bytes.size());
    std::memcpy(mark_.data() + mark_used_, bytes.data(), n);
    mark_used_ += static_cast<std::uint32_t>(n);
    bytes = bytes.subspan(n);
    if (mark_used_ < kRecordMarkSize) break;
    if (Reason why = begin_fragment(); why != Reason::None) return Failure{why};
  }
  return all - bytes.size();
}

void RecordReader::allow(std::uint32_t record) {
  if (record <= limits_.record) return;
  limits_.fragments = std::max(limits_.fragments, record / kShortFragment);
  limits_.record = record;
}

Reason RecordReader::begin_fragment() {
  const std::uint32_t mark = load_be<std::uint32_t>(mark_.data());
  mark_used_ = 0;
  last_ = (mark & kLastFragment) != 0;
  fragment_left_ = mark & ~kLastFragment;
  if (fragment_left_ > limits_.record - used_) return Reason::RpcRecordTooLong;
  // Empty fragments are legal; endless ones would spin us.
  if (++fragments_ > limits_.fragments) return Reason::RpcRecordFragmented;
  if (fragment_left_ == 0) end_of_fragment();
  return Reason::None;
}

void RecordReader::end_of_fragment() {
  complete_ = last_;
}

MutableBytes RecordReader::room() {
  if (fragment_left_ == 0) return {};
  const std::size_t step = std::min<std::size_t>(fragment_left_, std::max(used_, kFirstRoom));
  if (block_.capacity() == used_) reserve(used_ + step);
  return block_.bytes().subspan(used_,
                                std::min<std::size_t>(fragment_left_, block_.capacity() - used_));
}

void RecordReader::reserve(std::size_t wanted) {
  Block larger = Block::allocate(wanted);
  if (used_ > 0) std::memcpy(larger.data(), block_.data(), used_);
  block_ = std::move(larger);
}

void RecordReader::placed(std::size_t n) {
  STAG_CHECK(n <= fragment_left_);
  used_ += n;
  fragment_left_ -= static_cast<std::uint32_t>(n);
  if (fragment_left_ == 0) end_of_fragment();
}

Buffer RecordReader::take() {
  STAG_CHECK(complete_);
  complete_ = false;
  fragments_ = 0;
  const std::size_t size = std::exchange(used_, 0);
  if (!block_) return {};
  return std::exchange(block_, Block()).freeze(size);
}

}  // namespace stag::oncrpc
