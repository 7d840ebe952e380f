#include "iwarp/batch.h"

#include <algorithm>

namespace stag::iwarp {
namespace {
// Most turns have a few short messages to send, or one; those that have many soon fill the first
// block.
constexpr std::size_t kSmallBlock = 1024;
constexpr std::size_t kFirstBlock = 16 * 1024;
constexpr std::size_t kFurtherBlock = 64 * 1024;
}  // namespace

void Batch::sent_part(std::size_t count) {
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
  fill_from(small_);
  appended_ -= bytes_left_;
  bytes_left_ = 0;
}

void Batch::add_block(std::size_t least) {
  if (!small_ && least <= kSmallBlock) {
    small_ = Block::allocate(kSmallBlock);
    return fill_from(small_);
  }
  STAG_CHECK(blocks_.size() < kMostBlocks && least <= kFirstBlock);
  blocks_.push_back(Block::allocate(blocks_.empty() ? kFirstBlock : kFurtherBlock));
  fill_from(blocks_.back());
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
