#include "fabric/sim/memory_table.h"

#include <algorithm>

#include "base/checked.h"

namespace stag::fabric {

RemoteMemory MemoryTable::expose_source(Bytes memory) {
  return expose(Right::Read, {const_cast<std::byte*>(memory.data()), memory.size()});
}

RemoteMemory MemoryTable::expose_sink(MutableBytes memory) {
  return expose(Right::Write, memory);
}

RemoteMemory MemoryTable::expose(Right right, MutableBytes memory) {
  std::uint32_t handle;
  do {
    handle = static_cast<std::uint32_t>(random_.next());
  } while (handle == 0 || contains(handle));
  Entry entry;
  entry.right = right;
  // The top bit set, the next one clear: far from zero, and no sum with a length can wrap.
  entry.offset = (random_.next() >> 2) | 0x8000'0000'0000'0000u;
  entry.memory = memory;
  entry.length = memory.size();
  const std::uint64_t offset = entry.offset;
  entries_.emplace(handle, std::move(entry));
  return {handle, static_cast<std::uint32_t>(memory.size()), offset};
}

Result<MemoryTable::Target, Reason> MemoryTable::access(Right right, std::uint32_t handle,
                                                        std::uint64_t offset,
                                                        std::size_t length) const {
  const auto found = entries_.find(handle);
  if (found == entries_.end() || found->second.right != right)
    return Failure{Reason::RemoteAccessDenied};
  const Entry& entry = found->second;
  const std::uint64_t start = offset - entry.offset;  // huge when it lies before
  if (!range_within<std::uint64_t>(start, length, entry.length))
    return Failure{Reason::RemoteAccessOutOfBounds};
  Target target;
  if (right == Right::Write) {
    if (!entry.abandoned) target.sink = entry.memory.subspan(start, length);
  } else {
    const Bytes all = entry.abandoned ? entry.copy.bytes() : Bytes(entry.memory);
    target.source = all.subspan(start, length);
  }
  return target;
}

void MemoryTable::fill(std::uint32_t handle, std::uint64_t end) {
  Entry& entry = entries_.at(handle);
  entry.filled = std::max<std::size_t>(entry.filled, end - entry.offset);
}

std::optional<std::size_t> MemoryTable::filled(std::uint32_t handle) const {
  const auto found = entries_.find(handle);
  if (found == entries_.end() || found->second.right != Right::Write) return std::nullopt;
  return found->second.filled;
}

MutableBytes MemoryTable::remove(std::uint32_t handle) {
  const auto entry = entries_.extract(handle);
  return entry.empty() ? MutableBytes() : entry.mapped().memory;
}

std::size_t MemoryTable::copy_size(std::uint32_t handle) const {
  const auto found = entries_.find(handle);
  if (found == entries_.end() || found->second.right == Right::Write) return 0;
  return found->second.memory.size();
}

MutableBytes MemoryTable::abandon(std::uint32_t handle) {
  const auto found = entries_.find(handle);
  if (found == entries_.end() || found->second.abandoned) return {};
  Entry& entry = found->second;
  if (entry.right == Right::Read) entry.copy = Buffer::copy_of(entry.memory);
  entry.abandoned = true;
  return std::exchange(entry.memory, {});
}

}  // namespace stag::fabric
