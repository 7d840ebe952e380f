// Ranges of files: seek, allocate, deallocate, and what clone and copy share.
#include "base/checked.h"
#include "vfs/change_rules.h"
#include "vfs/memory/store.h"

namespace stag::vfs::memory {
namespace {

constexpr std::size_t kReserved = 1 << 20;

// Small pieces of a file are copied where others are shared, with the shards held.
constexpr std::uint64_t kLargestCopy = 1 << 20;
constexpr std::uint64_t kLargestClone = 16 << 20;

// One block of zeros stands for all storage that is only reserved: it is charged like any other,
// and a write puts its own bytes in its place.
const Buffer& reserved_block() {
  static const Buffer kBlock = [] {
    Block block = Block::allocate(kReserved);
    std::fill_n(block.data(), kReserved, std::byte{});
    return std::move(block).freeze(kReserved);
  }();
  return kBlock;
}

}  // namespace

Outcome<Sought> Store::seek(const Credentials& who, const Handle& file, std::uint64_t offset,
                            SeekTo what) {
  const auto id = id_of(file);
  if (!id) return Failure{id.error()};
  Locked lock(*this, *id);
  const auto inode = readable(who, *id);
  if (!inode) return Failure{inode.error()};
  const FileData& data = (*inode)->data;
  if (offset >= data.size()) return Failure{Status::Invalid};
  const std::uint64_t found =
      what == SeekTo::Data ? data.next_data(offset) : data.next_hole(offset);
  return Sought{found, found == data.size()};
}

Outcome<InodeId> Store::file_of_range(const Handle& file, std::uint64_t offset,
                                      std::uint64_t length) {
  if (length == 0) return Failure{Status::Invalid};
  if (!range_within<std::uint64_t>(offset, length, kLargestFile))
    return Failure{Status::FileTooBig};
  return id_of(file);
}

Change Store::changed_range(const Credentials& who, Inode& file, const BeforeChange& before) {
  if (!is_root(who)) drop_set_id(file);
  file.touch_data(now_());
  return changed(before, file);
}

Outcome<Change> Store::allocate(const Credentials& who, const Handle& file, std::uint64_t offset,
                                std::uint64_t length) {
  const auto id = file_of_range(file, offset, length);
  if (!id) return Failure{id.error()};
  Replaced replaced;
  Locked lock(*this, *id);
  const auto inode = writable(who, *id);
  if (!inode) return Failure{inode.error()};
  const BeforeChange before = (*inode)->before();
  FileData& data = (*inode)->data;
  Charge charge(*this, length - data.covered(offset, length));
  if (!charge) return Failure{Status::NoSpace};
  const std::uint64_t stored_before = data.stored();
  data.reserve(offset, offset + length, reserved_block(), replaced);
  charge.settle(data.stored() - stored_before);
  return changed_range(who, **inode, before);
}

Outcome<Change> Store::deallocate(const Credentials& who, const Handle& file, std::uint64_t offset,
                                  std::uint64_t length) {
  const auto id = file_of_range(file, offset, length);
  if (!id) return Failure{id.error()};
  Replaced replaced;
  Locked lock(*this, *id);
  const auto inode = writable(who, *id);
  if (!inode) return Failure{inode.error()};
  const BeforeChange before = (*inode)->before();
  FileData& data = (*inode)->data;
  const std::uint64_t stored_before = data.stored();
  data.punch(offset, length, replaced);
  used_.fetch_add(data.stored() - stored_before, std::memory_order_relaxed);
  return changed_range(who, **inode, before);
}

// How many bytes go, once both shards are held.
Outcome<std::uint64_t> Store::copied_length(const Credentials& who, InodeId from, InodeId to,
                                            const CopyRange& range) {
  const auto source = readable(who, from);
  if (!source) return Failure{source.error()};
  const auto target = writable(who, to);
  if (!target) return Failure{target.error()};
  const std::uint64_t size = (*source)->data.size();
  if (!range_within(range.from, range.length, size)) return Failure{Status::Invalid};
  const std::uint64_t length = range.length != 0 ? range.length : size - range.from;
  if (!range_within(range.to, length, kLargestFile)) return Failure{Status::FileTooBig};
  const bool apart = range.from + length <= range.to || range.to + length <= range.from;
  if (from == to && !apart) return Failure{Status::Invalid};
  return length;
}

// False, and nothing done, when there is no room. `range` has its length.
bool Store::move_range(const FileData& from, FileData& to, const CopyRange& range,
                       Replaced& replaced) {
  Charge charge(*this, from.covered(range.from, range.length));
  if (!charge) return false;
  const std::uint64_t end = range.from + range.length;
  const std::uint64_t to_end = range.to + range.length;
  Extents shared;
  for (std::uint64_t at = from.next_data(range.from); at < end;) {
    const std::uint64_t hole = std::min(end, from.next_hole(at));
    add(shared, at - range.from + range.to, adoptable(from.read(at, hole - at)));
    at = from.next_data(hole);
  }
  const std::uint64_t stored_before = to.stored();
  to.replace(range.to, to_end, std::move(shared), replaced);
  if (to.size() < to_end) to.resize(to_end, replaced);
  charge.settle(to.stored() - stored_before);
  return true;
}

Outcome<Copied> Store::share(const Credentials& who, const Handle& from, const Handle& to,
                             CopyRange range, Amount amount) {
  const auto from_id = id_of(from);
  if (!from_id) return Failure{from_id.error()};
  const auto to_id = id_of(to);
  if (!to_id) return Failure{to_id.error()};
  Replaced replaced;
  Locked lock(*this, {*from_id, *to_id});
  const auto length = copied_length(who, *from_id, *to_id, range);
  if (!length) return Failure{length.error()};
  if (amount == Amount::All && *length > kLargestClone) return Failure{Status::NotSupported};
  range.length = amount == Amount::All ? *length : std::min(*length, kLargestCopy);
  Inode& target = *find(*to_id);
  const BeforeChange before = target.before();
  if (range.length > 0) {
    if (!move_range(find(*from_id)->data, target.data, range, replaced))
      return Failure{Status::NoSpace};
    if (!is_root(who)) drop_set_id(target);
    target.touch_data(now_());
  }
  return Copied{range.length, Stability::FileSync, changed(before, target)};
}

Outcome<Change> Store::clone(const Credentials& who, const Handle& from, const Handle& to,
                             const CopyRange& range) {
  auto shared = share(who, from, to, range, Amount::All);
  if (!shared) return Failure{shared.error()};
  return std::move(shared->file);
}

Outcome<Copied> Store::copy(const Credentials& who, const Handle& from, const Handle& to,
                            const CopyRange& range) {
  return share(who, from, to, range, Amount::SomeWillDo);
}

}  // namespace stag::vfs::memory
