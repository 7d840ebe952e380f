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
    if (first_owner_ < owners_.size() && owners_[first_owner_].range == first_)
      owners_[first_owner_++].buffer = Buffer();
    ++first_;
  }
  ranges_[first_] = ranges_[first_].subspan(count);
}

void Batch::take_private_copies() {
  std::size_t needed = 0;
  const std::span<Owner> owners = std::span(owners_.data(), owners_.size()).subspan(first_owner_);
  for (const Owner& owner : owners)
    if (!owner.buffer.owned()) needed += ranges_[owner.range].size();
  if (needed == 0) return;
  Block block = Block::allocate(needed);
  std::size_t at = 0;
  for (const Owner& owner : owners) {
    if (owner.buffer.owned()) continue;
    const Bytes range = ranges_[owner.range];
    std::copy(range.begin(), range.end(), block.data() + at);
    at += range.size();
  }
  const Buffer copy = std::move(block).freeze(needed);
  at = 0;
  for (Owner& owner : owners) {
    if (owner.buffer.owned()) continue;
    Bytes& range = ranges_[owner.range];
    owner.buffer = copy.slice(at, range.size());
    at += range.size();
    range = owner.buffer.bytes();
  }
}

void Batch::clear() {
  ranges_.clear();
  owners_.clear();
  first_ = first_owner_ = 0;
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
  const bool last_is_own = owners_.empty() || owners_.back().range + 1 != ranges_.size();
  // The trailer of one FPDU and the header of the next lie side by side: one range for both.
  if (ranges() > 0 && last_is_own && ranges_.back().data() + ranges_.back().size() == bytes.data())
    ranges_.back() = Bytes(ranges_.back().data(), ranges_.back().size() + bytes.size());
  else
    ranges_.push_back(bytes);
  bytes_left_ += bytes.size();
  appended_ += bytes.size();
}

std::byte* Batch::add_own(std::size_t size) {
  std::byte* const start = take(size);
  append_own(Bytes(start, size));
  return start;
}

// There are no bytes without their owner, even where there is no memory to note it.
void Batch::append(Buffer payload) {
  if (payload.empty()) return;
  const Bytes bytes = payload.bytes();
  ranges_.emplace_back();
  owners_.push_back({ranges_.size() - 1, std::move(payload)});
  ranges_.back() = bytes;
  bytes_left_ += bytes.size();
  appended_ += bytes.size();
}

}  // namespace stag::iwarp
