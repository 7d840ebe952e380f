// DispatchTable: finds the program and version that a Call is for, and the RFC 5531 status when
// there is none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "oncrpc/message.h"

namespace stag::oncrpc {

// T serves one version of one program.
template <class T>
class DispatchTable {
 public:
  // Null when this program and version is not in the table.
  T* find(std::uint32_t program, std::uint32_t version) {
    for (Entry& entry : entries_)
      if (entry.program == program && entry.version == version) return &entry.target;
    return nullptr;
  }
  const T* find(std::uint32_t program, std::uint32_t version) const {
    return const_cast<DispatchTable*>(this)->find(program, version);
  }
  // Adds an entry; the table has none yet for this program and version.
  T& add(std::uint32_t program, std::uint32_t version, T target) {
    STAG_CHECK(find(program, version) == nullptr);
    return entries_.emplace_back(Entry{program, version, std::move(target)}).target;
  }

  template <class F>
  void for_each(F function) const {
    for (const Entry& entry : entries_) function(entry.target);
  }

  // The status for a Call that find() returns null for: PROG_UNAVAIL, or PROG_MISMATCH with the
  // lowest and highest version (RFC 5531 section 9). Counts the entries for which `visible` returns
  // true.
  template <class Visible>
  ReplyStatus missing(std::uint32_t program, Visible visible) const {
    VersionRange range{~0u, 0};
    for (const Entry& entry : entries_) {
      if (entry.program != program || !visible(entry.target)) continue;
      range.low = std::min(range.low, entry.version);
      range.high = std::max(range.high, entry.version);
    }
    if (range.low > range.high) return ReplyStatus::accepted(AcceptStat::PROG_UNAVAIL);
    return ReplyStatus::accepted(AcceptStat::PROG_MISMATCH, range);
  }

  ReplyStatus missing(std::uint32_t program) const {
    return missing(program, [](const T&) { return true; });
  }

 private:
  struct Entry {
    std::uint32_t program;
    std::uint32_t version;
    T target;
  };
  std::vector<Entry> entries_;
};

}  // namespace stag::oncrpc
