#include "xdr/stream.h"

#include <algorithm>

namespace stag::xdr {

namespace {

// What results and messages begin with: a head in such a Block is as small as any.
constexpr std::size_t kSmallHead = 512;

Rope copy_of(const Rope& rope) {
  Block block = Block::allocate(rope.size());
  rope.copy_to(block.bytes());
  return Rope(std::move(block).freeze(rope.size()));
}

}  // namespace

Rope Stream::rope() const {
  return without({});
}

Rope Stream::item_bytes(std::size_t index) const {
  const Item& item = items_[index];
  return item.in_head ? Rope(head_.slice(item.head_offset, item.length)) : item.bytes;
}

// Calls head(offset, length) and data(rope) for what the stream without `moved` consists of.
template <class Head, class Data>
inline void Stream::walk_without(std::span<const std::uint32_t> moved, Head head, Data data) const {
  std::size_t done = 0;  // Head bytes already told or left out.
  for (std::uint32_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    const bool leave_out = !moved.empty() && moved.front() == i;
    if (leave_out) moved = moved.subspan(1);
    if (item.in_head && !leave_out) continue;
    head(done, item.head_offset - done);
    done = item.head_offset;
    if (!leave_out) {
      data(item.bytes);
    } else {
      done += xdr_pad(item.length) + (item.in_head ? item.length : 0);
    }
  }
  STAG_CHECK(moved.empty());
  head(done, head_.size() - done);
}

Rope Stream::without(std::span<const std::uint32_t> moved) const {
  if (items_.empty()) return STAG_CHECK(moved.empty()), Rope(head_);
  Rope result;
  walk_without(
      moved, [&](std::size_t at, std::size_t length) { result.append(head_.slice(at, length)); },
      [&](const Rope& data) { result.append(data); });
  return result;
}

void Stream::add_parts_without(std::span<const std::uint32_t> moved, Parts& to) const {
  if (items_.empty()) return STAG_CHECK(moved.empty()), to.push_back(head_.bytes());
  walk_without(
      moved,
      [&](std::size_t at, std::size_t length) {
        if (length != 0) to.push_back(head_.bytes().subspan(at, length));
      },
      [&](const Rope& data) {
        for (const Buffer& piece : data.pieces()) to.push_back(piece.bytes());
      });
}

std::uint32_t Stream::size_without(std::span<const std::uint32_t> moved) const {
  std::uint32_t size = size_;
  for (const std::uint32_t index : moved) {
    const std::uint32_t length = items_[index].length;
    size -= length + static_cast<std::uint32_t>(xdr_pad(length));
  }
  return size;
}

void Stream::patch_u32(std::uint32_t offset, std::uint32_t value) {
  std::uint32_t in_head = offset;
  for (const Item& item : items_) {
    if (item.in_head || item.position > offset) continue;
    STAG_CHECK(offset - item.position >= item.length);
    in_head -= item.length;
  }
  STAG_CHECK(in_head <= head_.size() && head_.size() - in_head >= 4);
  Block copy = Block::allocate(head_.size());
  std::memcpy(copy.data(), head_.data(), head_.size());
  store_be(copy.data() + in_head, value);
  head_ = std::move(copy).freeze(head_.size());
}

void Stream::unshare() {
  for (Item& item : items_)
    if (!item.in_head) item.bytes = copy_of(item.bytes);
  if (head_.block_size() > std::max(4 * head_.size(), kSmallHead))
    head_ = Buffer::copy_of(head_.bytes());
}

std::size_t Stream::block_bytes() const {
  std::size_t bytes = head_.block_size();
  for (const Item& item : items_)
    for (const Buffer& piece : item.bytes.pieces()) bytes += piece.block_size();
  return bytes;
}

}  // namespace stag::xdr
