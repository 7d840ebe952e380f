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

FileData::Extents::const_iterator FileData::first_overlapping(std::uint64_t offset) const {
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

void FileData::put(std::uint64_t offset, Extent extent) {
  stored_ += charge_of(extent.length);
  extents_.insert_or_assign(offset, std::move(extent));
}

void FileData::put_new(std::uint64_t offset, Buffer bytes) {
  const std::size_t length = bytes.size();
  put(offset, {std::make_shared<Source>(Source{std::move(bytes), offset, length}), 0, length});
}

// Makes [offset, end) a hole.
void FileData::cut(std::uint64_t offset, std::uint64_t end, Replaced& replaced) {
  const auto constant = first_overlapping(offset);
  auto at = extents_.erase(constant, constant);  // the same position, mutable
  auto& sources = replaced.sources;
  const std::size_t first_replaced = sources.size();
  while (at != extents_.end() && at->first < end) {
    const std::uint64_t from = at->first;
    const Extent old = std::move(at->second);
    const std::uint64_t old_end = from + old.length;
    stored_ -= charge_of(old.length);
    at = extents_.erase(at);
    if (from < offset) put(from, {old.source, old.start, static_cast<std::size_t>(offset - from)});
    if (old_end > end)
      put(end, {old.source, old.start + static_cast<std::size_t>(end - from),
                static_cast<std::size_t>(old_end - end)});
    old.source->live -= static_cast<std::size_t>(std::min(end, old_end) - std::max(offset, from));
    if (sources.size() == first_replaced || sources.back() != old.source)
      sources.push_back(old.source);
  }
  for (std::size_t i = first_replaced; i < sources.size(); ++i) thin_out(sources[i]);
}

// Gives up a large block of which little is used: the used bytes move.
void FileData::thin_out(const SourceRef& source) {
  if (source->live == 0 || worth_its_block(source->buffer, source->live)) return;
  const std::uint64_t end = source->origin + source->buffer.size();
  for (auto at = extents_.lower_bound(source->origin); at != extents_.end() && at->first < end;
       ++at) {
    Extent& extent = at->second;
    if (extent.source != source) continue;
    Buffer copy = Buffer::copy_of(source->buffer.bytes().subspan(extent.start, extent.length));
    extent = {std::make_shared<Source>(Source{std::move(copy), at->first, extent.length}), 0,
              extent.length};
  }
  source->live = 0;
}

void FileData::write_piece(std::uint64_t offset, const Buffer& piece, Replaced& replaced) {
  const auto exact = extents_.find(offset);
  if (exact != extents_.end() && exact->second.length == piece.size()) {
    Extent& extent = exact->second;
    // No other extent lies in it: it can hold the new buffer, and nothing need be allocated.
    if (extent.source.use_count() == 1) {
      replaced.buffers.push_back(std::exchange(extent.source->buffer, piece));
      extent.source->origin = offset;
      extent.source->live = piece.size();
      extent.start = 0;
      return;
    }
    const SourceRef old =
        std::exchange(extent.source, std::make_shared<Source>(Source{piece, offset, piece.size()}));
    extent.start = 0;
    old->live -= piece.size();
    thin_out(old);
    replaced.sources.push_back(old);
    return;
  }
  cut(offset, offset + piece.size(), replaced);
  put_new(offset, piece);
  if (piece.size() < kWindow) copy_together(offset, replaced);
}

// Keeps many small writes from becoming many small extents: the window around `within` is copied
// into one when it is too crowded. Its few holes become zeros.
void FileData::copy_together(std::uint64_t within, Replaced& replaced) {
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
  cut(from, end, replaced);
  put_new(from, std::move(block).freeze(length));
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
  for (const Buffer& piece : data.pieces()) {
    write_piece(offset, piece, replaced);
    offset += piece.size();
  }
  size_ = std::max(size_, offset);
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
  if (size < size_) cut(size, size_, replaced);
  size_ = size;
}

}  // namespace stag::vfs::memory
