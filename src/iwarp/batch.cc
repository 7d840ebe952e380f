#include "iwarp/batch.h"

#include <algorithm>

namespace stag::iwarp {
namespace {
// Most turns have a few short messages to send; those that have many soon fill the first.
constexpr std::size_t kFirstBlock = 16 * 1024;
constexpr std::size_t kFurtherBlock = 64 * 1024;
constexpr std::size_t kMostBlocks = 5;
}  // namespace

std::span<const Bytes> Batch::unsent() const {
  return std::span(ranges_.data() + first_, ranges_.size() - first_);
}

void Batch::sent(std::size_t count) {
  STAG_CHECK(count <= bytes_left_);
  bytes_left_ -= count;
  if (bytes_left_ == 0) return clear();
  while (count >= ranges_[first_].size()) {
    count -= ranges_[first_].size();
    owners_[first_] = Buffer();
    ++first_;
  }
  ranges_[first_] = ranges_[first_].subspan(count);
}

void Batch::take_private_copies() {
  std::size_t needed = 0;
  const auto is_borrowed = [this](std::size_t i) {
    return !owners_[i].empty() && !owners_[i].owned();
  };
  for (std::size_t i = first_; i < ranges_.size(); ++i) {
    if (is_borrowed(i)) needed += ranges_[i].size();
  }
  if (needed == 0) return;
  Block block = Block::allocate(needed);
  std::size_t at = 0;
  for (std::size_t i = first_; i < ranges_.size(); ++i) {
    if (!is_borrowed(i)) continue;
    std::copy(ranges_[i].begin(), ranges_[i].end(), block.data() + at);
    at += ranges_[i].size();
  }
  const Buffer copy = std::move(block).freeze(needed);
  at = 0;
  for (std::size_t i = first_; i < ranges_.size(); ++i) {
    if (!is_borrowed(i)) continue;
    owners_[i] = copy.slice(at, ranges_[i].size());
    ranges_[i] = owners_[i].bytes();
    at += ranges_[i].size();
  }
}

void Batch::clear() {
  ranges_.clear();
  owners_.clear();
  first_ = 0;
  taken_ = 0;
  blocks_.clear();
  appended_ -= bytes_left_;
  bytes_left_ = 0;
}

std::size_t Batch::left_in_block() const {
  return blocks_.empty() ? 0 : blocks_.back().capacity() - taken_;
}

bool Batch::has_room(std::size_t size) const {
  return blocks_.size() < kMostBlocks || size <= left_in_block();
}

std::byte* Batch::take(std::size_t size) {
  if (size > left_in_block()) {
    STAG_CHECK(blocks_.size() < kMostBlocks && size <= kFirstBlock);
    blocks_.push_back(Block::allocate(blocks_.empty() ? kFirstBlock : kFurtherBlock));
    taken_ = 0;
  }
  std::byte* start = blocks_.back().data() + taken_;
  taken_ += size;
  return start;
}

void Batch::append_own(Bytes bytes) {
  // The trailer of one FPDU and the header of the next lie side by side: one range for both.
  if (ranges() > 0 && owners_.back().empty() &&
      ranges_.back().data() + ranges_.back().size() == bytes.data()) {
    Bytes& last = ranges_.back();
    last = Bytes(last.data(), last.size() + bytes.size());
    bytes_left_ += bytes.size();
    appended_ += bytes.size();
    return;
  }
  push(bytes, Buffer());
}

std::byte* Batch::add_own(std::size_t size) {
  std::byte* const start = take(size);
  append_own(Bytes(start, size));
  return start;
}

void Batch::append(Buffer payload) {
  if (payload.empty()) return;
  const Bytes bytes = payload.bytes();
  push(bytes, std::move(payload));
}

void Batch::push(Bytes bytes, Buffer owner) {
  ranges_.push_back(bytes);
  owners_.push_back(std::move(owner));
  bytes_left_ += bytes.size();
  appended_ += bytes.size();
}

}  // namespace stag::iwarp
