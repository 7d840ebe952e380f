#include "rpc/message.h"

#include <algorithm>

namespace stag::rpc {

void ReducedItems::add(std::uint32_t position, Rope bytes) {
  entries_.emplace_back(Entry{Kind::Read, position, xdr::kNoItem, std::move(bytes), false});
}

void ReducedItems::add_written(Rope bytes, xdr::ItemId place) {
  entries_.emplace_back(Entry{Kind::Written, 0, place, std::move(bytes), false});
}

void ReducedItems::add_inline(xdr::ItemId place) {
  entries_.emplace_back(Entry{Kind::Inline, 0, place, Rope(), false});
}

bool ReducedItems::all_taken() const {
  return std::all_of(entries_.begin(), entries_.end(),
                     [](const Entry& e) { return e.kind != Kind::Read || e.taken; });
}

std::optional<Rope> ReducedItems::fail() {
  failed_ = true;
  return std::nullopt;
}

std::optional<Rope> ReducedItems::take(xdr::ItemId id, std::uint32_t position,
                                       std::uint32_t length) {
  const bool eligible = std::find(eligible_.begin(), eligible_.end(), id) != eligible_.end();
  for (Entry& entry : entries_)
    if (entry.kind == Kind::Read && !entry.taken && entry.position == position)
      return take_read(entry, eligible, length);
  if (!eligible) return std::nullopt;
  return take_written(id, length);
}

std::optional<Rope> ReducedItems::take_read(Entry& entry, bool eligible, std::uint32_t length) {
  if (!eligible) return fail();
  entry.taken = true;
  // RFC 8166 3.4.5.2: the chunk may hold the item's pad or leave it out; any other length does not
  // belong to this item.
  const std::size_t size = entry.bytes.size();
  if (size == length) return entry.bytes;
  if (size == length + xdr_pad(length)) return entry.bytes.slice(0, length);
  return fail();
}

std::optional<Rope> ReducedItems::take_written(xdr::ItemId id, std::uint32_t length) {
  // RFC 8166 4.3.2.2: eligible results meet the chunks in order, an item of no length included.
  const auto passes = [id](const Entry& entry) {
    return entry.kind == Kind::Read || (entry.place != xdr::kNoItem && entry.place != id);
  };
  while (next_ < entries_.size() && passes(entries_[next_])) ++next_;
  if (next_ == entries_.size()) return std::nullopt;
  const Entry& entry = entries_[next_++];
  if (entry.kind == Kind::Inline) return std::nullopt;
  // RFC 8166 6.1: an item that stays inline although it had a chunk is as wrong as one of another
  // length.
  if (entry.bytes.size() != length) return fail();
  return entry.bytes;
}

}  // namespace stag::rpc
