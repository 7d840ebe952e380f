#include "xdr/encoder.h"

#include <algorithm>
#include <utility>

namespace stag::xdr {

namespace {

std::size_t padded_size(Bytes bytes) {
  return bytes.size() + xdr_pad(bytes.size());
}

void put_padded(std::byte* at, Bytes bytes) {
  // The padding, and what is written over next.
  std::memset(at + padded_size(bytes) - 4, 0, 4);
  std::memcpy(at, bytes.data(), bytes.size());
}

}  // namespace

Encoder::Encoder(std::span<const ItemId> watched, std::size_t head_capacity)
    : watched_(watched), head_(Block::allocate(head_capacity)) {}

void Encoder::grow(std::size_t length) {
  Block larger = Block::allocate(std::max(head_.capacity() * 2, used_ + length));
  std::memcpy(larger.data(), head_.data(), used_);
  head_ = std::move(larger);
}

void Encoder::pad_after(std::size_t length) {
  const std::size_t pad = xdr_pad(length);
  if (pad > 0) std::memset(reserve(pad), 0, pad);
}

bool Encoder::watches(ItemId id) const {
  return id != kNoItem && std::ranges::find(watched_, id) != watched_.end();
}

void Encoder::fixed_opaque(Bytes bytes) {
  if (!fits(bytes.size())) return fail(Error::TooLong);
  if (!bytes.empty()) put_padded(reserve(padded_size(bytes)), bytes);
}

void Encoder::note(ItemId id, std::size_t length, bool in_head, Rope bytes) {
  Item item;
  if (watches(id)) {
    item.id = id;
    item.ordinal = places_++;
  }
  item.position = position();
  item.length = static_cast<std::uint32_t>(length);
  item.head_offset = static_cast<std::uint32_t>(used_);
  item.in_head = in_head;
  item.bytes = std::move(bytes);
  items_.push_back(std::move(item));
}

void Encoder::opaque(ItemId id, const Rope& bytes, std::uint32_t bound) {
  const std::size_t length = bytes.size();
  if (!length_word(length, bound)) return;
  if (length >= kReferencedFrom) {
    note(id, length, false, bytes);
    referenced_ += static_cast<std::uint32_t>(length);
  } else {
    if (watches(id)) note(id, length, true, {});
    if (length > 0) bytes.copy_to({reserve(length), length});
  }
  pad_after(length);
}

void Encoder::opaque(ItemId id, Bytes bytes, std::uint32_t bound) {
  if (!length_word(bytes.size(), bound)) return;
  if (watches(id)) note(id, bytes.size(), true, {});
  if (!bytes.empty()) put_padded(reserve(padded_size(bytes)), bytes);
}

void Encoder::body(ItemId id, Encoder&& body) {
  fail(body.error());
  const Stream stream = std::move(body).finish();
  if (!ok()) return;
  if (stream.size() > kUnbounded - position()) return fail(Error::TooLong);
  const bool in_head = stream.size() < kReferencedFrom;
  const Rope bytes = stream.rope();
  note(id, stream.size(), in_head, in_head ? Rope() : bytes);
  if (in_head)
    bytes.copy_to({reserve(stream.size()), stream.size()});
  else
    referenced_ += stream.size();
}

bool Encoder::count(std::size_t elements, std::uint32_t bound) {
  if (elements > bound) {
    fail(Error::TooLong);
    return false;
  }
  u32(static_cast<std::uint32_t>(elements));
  return true;
}

void Encoder::append(const Stream& other) {
  if (!other.ok() || other.size() > kUnbounded - position()) return fail(Error::TooLong);
  const std::uint32_t position_before = position();
  const std::size_t used_before = used_;
  for (Item item : other.items()) {
    item.position += position_before;
    item.head_offset += static_cast<std::uint32_t>(used_before);
    if (!item.in_head) referenced_ += item.length;
    item.ordinal += places_;
    items_.push_back(std::move(item));
  }
  places_ += other.places();
  const Buffer& head = other.head();
  if (!head.empty()) std::memcpy(reserve(head.size()), head.data(), head.size());
}

void Encoder::rewind(const Mark& to) {
  STAG_CHECK(to.used <= used_ && to.items <= items_.size());
  used_ = to.used;
  while (items_.size() > to.items) items_.pop_back();
  referenced_ = to.referenced;
  places_ = to.places;
  error_ = to.error;
}

std::uint64_t Encoder::bytes_of_items(std::uint32_t places) const {
  std::uint64_t bytes = 0;
  if (places == 0) return bytes;
  for (const Item& item : items_)
    if (item.id != kNoItem && item.ordinal < places) bytes += item.length + xdr_pad(item.length);
  return bytes;
}

void Encoder::patch_u32(std::uint32_t offset, std::uint32_t value) {
  std::uint32_t in_head = offset;
  for (const Item& item : items_) {
    if (item.in_head || item.position > offset) continue;
    STAG_CHECK(offset - item.position >= item.length);
    in_head -= item.length;
  }
  STAG_CHECK(in_head <= used_ && used_ - in_head >= 4);
  store_be(head_.data() + in_head, value);
}

}  // namespace stag::xdr
