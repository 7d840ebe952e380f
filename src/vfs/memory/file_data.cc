#include "vfs/memory/file_data.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace stag::vfs::memory {
namespace {

constexpr std::uint64_t kUnit = 512;  // bytes; an extent is charged in multiples of it
constexpr std::uint64_t kWindow = 64 * 1024;
constexpr std::size_t kExtentsPerWindow = 17;  // 16 aligned 4 KiB writes and one that straddles

std::uint64_t charge_of(std::uint64_t length) {
  return (length + kUnit - 1) / kUnit * kUnit;
}

const Buffer& zeros() {
  static const Buffer kZeros = [] {
    Block block = Block::allocate(256 * 1024);
    std::memset(block.data(), 0, block.capacity());
    return std::move(block).freeze(256 * 1024);
  }();
  return kZeros;
}

void append_zeros(Rope& to, std::uint64_t length) {
  while (length > 0) {
    const std::uint64_t step = std::min<std::uint64_t>(length, zeros().size());
    to.append(zeros().slice(0, step));
    length -= step;
  }
}

// Whether so many bytes in use are a quarter of the block that they keep.
bool worth_its_block(const Buffer& buffer, std::size_t used) {
  return charge_of(used) >= buffer.block_size() / 4;
}

bool kept_as_it_is(const Buffer& piece) {
  return piece.owned() && piece.size() >= kAdoptFrom && worth_its_block(piece, piece.size());
}

}  // namespace

Rope adoptable(Rope data) {
  if (std::ranges::all_of(data.pieces(), kept_as_it_is)) return data;
  Rope kept;
  Rope small;
  auto flush = [&] {
    if (small.empty()) return;
    Block block = Block::allocate(small.size());
    small.copy_to(block.bytes());
    const std::size_t size = small.size();
    kept.append(std::move(block).freeze(size));
    small = {};
  };
  for (const Buffer& piece : data.pieces()) {
    if (kept_as_it_is(piece)) {
      flush();
      kept.append(piece);
    } else {
      small.append(piece);
    }
  }
  flush();
  return kept;
}

void add(Extents& to, std::uint64_t offset, const Rope& data) {
  for (const Buffer& piece : data.pieces()) {
    to.emplace(offset, Extent{std::make_shared<Source>(Source{piece, offset, piece.size()}), 0,
                              piece.size()});
    offset += piece.size();
  }
}

Extents::const_iterator FileData::first_overlapping(std::uint64_t offset) const {
  auto at = extents_.upper_bound(offset);
  if (at == extents_.begin()) return at;
  const auto previous = std::prev(at);
  return previous->first + previous->second.length > offset ? previous : at;
}

std::uint64_t FileData::covered(std::uint64_t offset, std::uint64_t length) const {
  std::uint64_t sum = 0;
  const std::uint64_t end = offset + length;
  for (auto at = first_overlapping(offset); at != extents_.end() && at->first < end; ++at)
    sum += std::min(end, at->first + at->second.length) - std::max(offset, at->first);
  return sum;
}

Rope FileData::read(std::uint64_t offset, std::uint64_t length) const {
  const auto first = first_overlapping(offset);
  if (first != extents_.end() && first->first <= offset &&
      first->first + first->second.length - offset >= length) {
    const Extent& extent = first->second;
    return extent.source->buffer.slice(extent.start + (offset - first->first), length);
  }
  return gather(offset, length);
}

Rope FileData::gather(std::uint64_t offset, std::uint64_t length) const {
  Rope rope;
  Extent pending;
  auto flush = [&] {
    if (pending.length > 0)
      rope.append(pending.source->buffer.slice(pending.start, pending.length));
    pending = {};
  };
  const std::uint64_t end = offset + length;
  for (auto at = first_overlapping(offset); at != extents_.end() && at->first < end; ++at) {
    if (at->first > offset) {
      flush();
      append_zeros(rope, at->first - offset);
      offset = at->first;
    }
    const Extent& extent = at->second;
    const std::size_t start = extent.start + static_cast<std::size_t>(offset - at->first);
    const std::size_t step = static_cast<std::size_t>(
        std::min<std::uint64_t>(end - offset, at->first + extent.length - offset));
    const bool follows = pending.source == extent.source && pending.start + pending.length == start;
    if (!follows) {
      flush();
      pending = {extent.source, start, 0};
    }
    pending.length += step;
    offset += step;
  }
  flush();
  append_zeros(rope, end - offset);
  return rope;
}

// Just before `behind`, where that is their place.
void FileData::insert(Extents::const_iterator behind, Extents&& extents) {
  while (!extents.empty()) {
    stored_ += charge_of(extents.begin()->second.length);
    extents_.insert(behind, extents.extract(extents.begin()));
  }
}

// Puts the extents in the place of those that the range has, which it returns.
Extents FileData::splice(std::uint64_t offset, std::uint64_t end, Extents&& extents) {
  const auto constant = first_overlapping(offset);
  auto at = extents_.erase(constant, constant);  // the same position, mutable
  auto last = at;
  auto behind = at;
  while (behind != extents_.end() && behind->first < end) last = behind++;
  if (at != behind) {
    const auto& [from, extent] = *last;
    const std::uint64_t extent_end = from + extent.length;
    if (extent_end > end)
      extents.emplace(end,
                      Extent{extent.source, extent.start + static_cast<std::size_t>(end - from),
                             static_cast<std::size_t>(extent_end - end)});
  }
  // Nothing from here on asks for memory.
  Extents old;
  while (at != behind) {
    const std::uint64_t from = at->first;
    Extent& extent = at->second;
    extent.source->live -=
        static_cast<std::size_t>(std::min(end, from + extent.length) - std::max(offset, from));
    stored_ -= charge_of(extent.length);
    if (from < offset) {
      extent.length = static_cast<std::size_t>(offset - from);
      stored_ += charge_of(extent.length);
      ++at;
    } else {
      old.insert(old.end(), extents_.extract(at++));
    }
  }
  insert(behind, std::move(extents));
  return old;
}

void FileData::replace(std::uint64_t offset, std::uint64_t end, Extents&& extents,
                       Replaced& replaced) {
  Extents old = splice(offset, end, std::move(extents));
  tidy(offset, end, old, replaced);
  replaced.extents.merge(old);
}

// Saves memory after a change of the range, which had the extents `old`.
void FileData::tidy(std::uint64_t offset, std::uint64_t end, const Extents& old,
                    Replaced& replaced) noexcept try {
  for (const auto& [from, extent] : old) thin_out(extent.source, replaced);
  const auto at = extents_.lower_bound(offset);
  if (at != extents_.begin()) thin_out(std::prev(at)->second.source, replaced);
  copy_together(at, end, replaced);
} catch (const std::bad_alloc&) {
  // The change is made; what was to be copied stays where it is.
}

// Gives up a large block of which little is used: the used bytes move.
void FileData::thin_out(const SourceRef& little_used, Replaced& replaced) {
  if (little_used->live == 0 || worth_its_block(little_used->buffer, little_used->live)) return;
  const SourceRef source = little_used;  // which may be that of an extent here
  replaced.buffers.push_back(source->buffer);
  const std::uint64_t end = source->origin + source->buffer.size();
  for (auto at = extents_.lower_bound(source->origin); at != extents_.end() && at->first < end;
       ++at) {
    Extent& extent = at->second;
    if (extent.source != source) continue;
    Buffer copy = Buffer::copy_of(source->buffer.bytes().subspan(extent.start, extent.length));
    extent = {std::make_shared<Source>(Source{std::move(copy), at->first, extent.length}), 0,
              extent.length};
    source->live -= extent.length;
  }
}

// The buffer takes the place of one that is as long, in the same extent: nothing need be allocated.
// False if no extent has just this range, or others lie in its source, too.
bool FileData::take_over(std::uint64_t offset, const Buffer& buffer, Replaced& replaced) {
  const auto at = extents_.find(offset);
  if (at == extents_.end() || at->second.length != buffer.size()) return false;
  Extent& extent = at->second;
  if (extent.source.use_count() != 1) return false;
  std::swap(extent.source->buffer, replaced.buffers.emplace_back(buffer));
  extent.source->origin = offset;
  extent.source->live = buffer.size();
  extent.start = 0;
  return true;
}

// Keeps many small writes from becoming many small extents, from `at` on.
void FileData::copy_together(Extents::const_iterator at, std::uint64_t end, Replaced& replaced) {
  while (at != extents_.end() && at->first < end) {
    const std::uint64_t within = at->first;
    const std::uint64_t next =
        std::max(within + at->second.length, (within / kWindow + 1) * kWindow);
    if (at->second.length < kWindow) copy_window(within, replaced);
    if (next >= end) return;
    at = extents_.lower_bound(next);
  }
}

// Copies the window around `within` into one extent when it is too crowded. Its few holes become
// zeros.
void FileData::copy_window(std::uint64_t within, Replaced& replaced) {
  const std::uint64_t window = within / kWindow * kWindow;
  std::size_t count = 0;
  std::uint64_t from = 0;
  std::uint64_t end = 0;
  for (auto at = first_overlapping(window); at != extents_.end() && at->first < window + kWindow;
       ++at) {
    if (count++ == 0) from = std::max(window, at->first);
    end = std::min(window + kWindow, at->first + at->second.length);
  }
  if (count <= kExtentsPerWindow) return;
  const std::size_t length = static_cast<std::size_t>(end - from);
  Block block = Block::allocate(length);
  read(from, length).copy_to(block.bytes());
  Extents together;
  add(together, from, Rope(std::move(block).freeze(length)));
  replace(from, end, std::move(together), replaced);
}

bool FileData::overwrite(std::uint64_t offset, const Rope& data) {
  const auto first = first_overlapping(offset);
  std::uint64_t reached = offset;
  for (auto at = first; reached < offset + data.size(); ++at) {
    if (at == extents_.end() || at->first > reached) return false;
    if (at->second.source->buffer.exclusive().empty()) return false;
    reached = at->first + at->second.length;
  }
  auto at = first;
  for (const Buffer& piece : data.pieces()) {
    for (Bytes left = piece.bytes(); !left.empty();) {
      const Extent& extent = at->second;
      const auto within = static_cast<std::size_t>(offset - at->first);
      const std::size_t step = std::min(left.size(), extent.length - within);
      std::memcpy(extent.source->buffer.exclusive().data() + extent.start + within, left.data(),
                  step);
      left = left.subspan(step);
      offset += step;
      if (within + step == extent.length) ++at;
    }
  }
  return true;
}

void FileData::write(std::uint64_t offset, const Rope& data, Replaced& replaced) {
  if (data.pieces().size() == 1 && take_over(offset, data.pieces().front(), replaced)) return;
  Extents extents;
  add(extents, offset, data);
  const std::uint64_t end = offset + data.size();
  replace(offset, end, std::move(extents), replaced);
  size_ = std::max(size_, end);
}

void FileData::reserve(std::uint64_t offset, std::uint64_t end, const Buffer& block,
                       Replaced& replaced) {
  Extents extents;
  std::uint64_t from = offset;
  const auto fill = [&](std::uint64_t to) {
    while (from < to) {
      const std::size_t step = std::min<std::uint64_t>(to - from, block.size());
      add(extents, from, Rope(block.slice(0, step)));
      from += step;
    }
  };
  for (auto at = first_overlapping(offset); at != extents_.end() && at->first < end; ++at) {
    fill(at->first);
    from = at->first + at->second.length;
  }
  fill(end);
  insert(extents_.end(), std::move(extents));
  size_ = std::max(size_, end);
  tidy(offset, end, {}, replaced);
}

std::uint64_t FileData::next_data(std::uint64_t offset) const {
  const auto at = first_overlapping(offset);
  return at == extents_.end() ? size_ : std::max(offset, at->first);
}

std::uint64_t FileData::next_hole(std::uint64_t offset) const {
  for (auto at = first_overlapping(offset); at != extents_.end() && at->first <= offset; ++at)
    offset = at->first + at->second.length;
  return std::min(offset, size_);
}

void FileData::resize(std::uint64_t size, Replaced& replaced) {
  if (size < size_) punch(size, size_ - size, replaced);
  size_ = size;
}

}  // namespace stag::vfs::memory
