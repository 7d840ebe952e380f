#include "rpc/message.h"

#include <algorithm>

namespace stag::rpc {
namespace {

bool lies_in(Bytes bytes, std::span<const ResultBuffer> buffers) {
  constexpr std::less_equal<const std::byte*> kNotBehind;
  return std::ranges::any_of(buffers, [&](const ResultBuffer& buffer) {
    return kNotBehind(buffer.memory.data(), bytes.data()) &&
           kNotBehind(bytes.data() + bytes.size(), buffer.memory.data() + buffer.memory.size());
  });
}

}  // namespace

void ReducedItems::add(std::uint32_t position, Rope bytes) {
  entries_.emplace_back(Entry{Kind::Read, position, xdr::kNoItem, std::move(bytes), false});
}

void ReducedItems::add_written(Rope bytes, xdr::ItemId place) {
  entries_.emplace_back(Entry{Kind::Written, 0, place, std::move(bytes), false});
}

void ReducedItems::add_inline(xdr::ItemId place) {
  entries_.emplace_back(Entry{Kind::Inline, 0, place, Rope(), false});
}

void ReducedItems::keep(std::span<const ResultBuffer> result_buffers) {
  const auto stays = [&](const Buffer& piece) {
    return piece.owned() || lies_in(piece.bytes(), result_buffers);
  };
  for (Entry& entry : entries_) {
    const Rope::Pieces& pieces = entry.bytes.pieces();
    if (std::all_of(pieces.begin(), pieces.end(), stays)) continue;
    Rope kept;
    for (const Buffer& piece : pieces)
      kept.append(stays(piece) ? piece : Buffer::copy_of(piece.bytes()));
    entry.bytes = std::move(kept);
  }
}

bool ReducedItems::all_taken() const {
  for (const Entry& entry : entries_)
    if (entry.kind == Kind::Read && !entry.taken) return false;
  return true;
}

std::optional<Rope> ReducedItems::fail() {
  failed_ = true;
  return std::nullopt;
}

bool ReducedItems::eligible(xdr::ItemId id) const {
  return std::find(eligible_.begin(), eligible_.end(), id) != eligible_.end();
}

ReducedItems::Entry* ReducedItems::read_at(std::uint32_t position) {
  for (Entry& entry : entries_)
    if (entry.kind == Kind::Read && !entry.taken && entry.position == position) return &entry;
  return nullptr;
}

// The chunk that the next eligible result of this name would meet; null when there is none for it.
ReducedItems::Entry* ReducedItems::next_written(xdr::ItemId id) {
  const auto passes = [id](const Entry& entry) {
    return entry.kind == Kind::Read || (entry.place != xdr::kNoItem && entry.place != id);
  };
  while (next_ < entries_.size() && passes(entries_[next_])) ++next_;
  return next_ == entries_.size() ? nullptr : &entries_[next_];
}

// The k-th item of a name has the k-th sink of that name, however it came.
const ResultBuffer* ReducedItems::next_result_buffer(xdr::ItemId id) {
  constexpr std::size_t kMost = 64;
  for (std::size_t i = 0; i < std::min(result_buffers_.size(), kMost); ++i) {
    const std::uint64_t bit = std::uint64_t{1} << i;
    if (result_buffers_[i].item != id || (result_buffers_used_ & bit) != 0) continue;
    result_buffers_used_ |= bit;
    return &result_buffers_[i];
  }
  return nullptr;
}

MutableBytes ReducedItems::place(std::uint32_t length) {
  if (result_buffer_ == nullptr || length > result_buffer_->memory.size()) return {};
  return result_buffer_->memory.first(length);
}

std::optional<Rope> ReducedItems::take(xdr::ItemId id, std::uint32_t position,
                                       std::uint32_t length) {
  result_buffer_ = result_buffers_.empty() ? nullptr : next_result_buffer(id);
  if (Entry* entry = read_at(position)) return eligible(id) ? take_read(*entry, length) : fail();
  return eligible(id) ? take_written(id, length) : std::nullopt;
}

std::optional<Rope> ReducedItems::take_read(Entry& entry, std::uint32_t length) {
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
  const Entry* entry = next_written(id);
  if (entry == nullptr) return std::nullopt;
  ++next_;
  if (entry->kind == Kind::Inline) return std::nullopt;
  // RFC 8166 6.1: an item that stays inline although it had a chunk is as wrong as one of another
  // length.
  if (entry->bytes.size() != length) return fail();
  return entry->bytes;
}

// A body has no length word to compare with: the codec that decodes it notices whether it ends
// where its chunk ends.
std::optional<Rope> ReducedItems::take_body(xdr::ItemId id, std::uint32_t position) {
  if (Entry* entry = read_at(position)) {
    if (!eligible(id)) return fail();
    entry->taken = true;
    return entry->bytes;
  }
  const Entry* entry = eligible(id) ? next_written(id) : nullptr;
  if (entry == nullptr) return std::nullopt;
  ++next_;
  if (entry->kind == Kind::Inline) return std::nullopt;
  return entry->bytes;
}

// RFC 8267 6.4.1: its chunk, where each result has its own, comes back unused.
void ReducedItems::absent(xdr::ItemId id) {
  if (!eligible(id)) return;
  const Entry* entry = next_written(id);
  if (entry != nullptr && entry->place == id) ++next_;
}

}  // namespace stag::rpc
