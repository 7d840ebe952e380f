#include "iwarp/memory.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"

namespace stag::iwarp {
namespace {

constexpr std::size_t kInitialCapacity = 64;

// RFC 5041 7.1: the offset lies inside, the sum lies inside, and the sum does not wrap.
std::optional<StagFault> range_fault(std::uint64_t base, std::size_t size, std::uint64_t offset,
                                     std::size_t length) {
  if (!checked_add<std::uint64_t>(offset, length).has_value()) return StagFault::Wrap;
  if (offset < base) return StagFault::Bounds;
  if (!range_within<std::uint64_t>(offset - base, length, size)) return StagFault::Bounds;
  return std::nullopt;
}

}  // namespace

Reason reason_of(StagFault fault) {
  switch (fault) {
    case StagFault::Unknown:
      return Reason::StagUnknown;
    case StagFault::Revoked:
      return Reason::StagRevoked;
    case StagFault::WrongRight:
      return Reason::StagAccessViolation;
    case StagFault::Bounds:
      return Reason::BaseOrBoundsViolation;
    case StagFault::Wrap:
      return Reason::StagOffsetWraps;
  }
  return Reason::StagUnknown;
}

ErrorCode read_error_of(StagFault fault) {
  if (fault == StagFault::WrongRight) return error::kReadAccess;
  if (fault == StagFault::Bounds) return error::kReadBounds;
  if (fault == StagFault::Wrap) return error::kReadOffsetWrap;
  return error::kReadInvalidStag;
}

ErrorCode tagged_error_of(StagFault fault) {
  // RFC 5041 7.2 knows no access rights: an STag that may not be written to is not a valid one.
  if (fault == StagFault::Bounds) return error::kTaggedBounds;
  if (fault == StagFault::Wrap) return error::kTaggedOffsetWrap;
  return error::kTaggedInvalidStag;
}

StagTable::StagTable(Entropy& entropy, std::size_t limit) : entropy_(entropy), limit_(limit) {}

std::optional<std::uint32_t> StagTable::expose_source(Bytes memory, std::uint64_t offset) {
  Entry entry;
  entry.right = Right::RemoteRead;
  entry.offset = offset;
  entry.size = memory.size();
  entry.readable = memory.data();
  return add(std::move(entry));
}

std::optional<std::uint32_t> StagTable::expose_sink(MutableBytes memory, std::uint64_t offset) {
  Entry entry;
  entry.right = Right::RemoteWrite;
  entry.offset = offset;
  entry.size = memory.size();
  entry.writable = memory.data();
  return add(std::move(entry));
}

std::optional<std::uint32_t> StagTable::register_read_sink(MutableBytes memory,
                                                           std::uint64_t offset) {
  Entry entry;
  entry.right = Right::ReadSink;
  entry.offset = offset;
  entry.size = memory.size();
  entry.writable = memory.data();
  return add(std::move(entry));
}

std::optional<std::uint32_t> StagTable::add(Entry entry) {
  STAG_CHECK(checked_add<std::uint64_t>(entry.offset, entry.size).has_value());
  if (live_ >= limit_) return std::nullopt;
  if ((used_ + 1) * 2 > entries_.size()) grow();
  entry.stag = fresh_stag();
  entry.state = State::Exposed;
  const std::uint32_t stag = entry.stag;
  insert(std::move(entry));
  ++used_;
  ++live_;
  return stag;
}

bool StagTable::revoke(std::uint32_t stag) {
  Entry* entry = find(stag);
  if (entry == nullptr || entry->state == State::Revoked) return false;
  --live_;
  // A Read Response is held against its Read Request before its STag is looked up.
  if (entry->right == Right::ReadSink) {
    erase(stag);
    return true;
  }
  entry->state = State::Revoked;
  entry->copy = Buffer();
  quarantine(stag);
  return true;
}

bool StagTable::discard(std::uint32_t stag) {
  Entry* entry = find(stag);
  if (entry == nullptr || entry->state == State::Revoked) return false;
  if (entry->right == Right::RemoteRead) return false;
  entry->state = State::Discarding;
  entry->writable = nullptr;
  return true;
}

std::optional<Bytes> StagTable::exposed_source(std::uint32_t stag) const {
  const Entry* entry = find(stag);
  if (entry == nullptr || entry->state != State::Exposed) return std::nullopt;
  if (entry->right != Right::RemoteRead) return std::nullopt;
  return Bytes(entry->readable, entry->size);
}

bool StagTable::substitute(std::uint32_t stag, Buffer copy) {
  Entry* entry = find(stag);
  if (entry == nullptr || entry->state != State::Exposed) return false;
  if (entry->right != Right::RemoteRead) return false;
  STAG_CHECK(copy.size() == entry->size);
  entry->readable = copy.data();
  entry->copy = std::move(copy);
  return true;
}

void StagTable::count_read(std::uint32_t stag, std::uint64_t offset, std::size_t length) {
  Entry* entry = find(stag);
  if (entry == nullptr || entry->right != Right::RemoteRead) return;
  const std::uint64_t from = offset - entry->offset;
  if (from > entry->touched) return;
  entry->touched = std::max<std::size_t>(entry->touched, from + length);
}

bool StagTable::retire(std::uint32_t stag) {
  Entry* entry = find(stag);
  if (entry == nullptr || entry->state != State::Exposed) return false;
  if (entry->right != Right::RemoteRead || entry->touched < entry->size) return false;
  entry->state = State::Discarding;
  entry->readable = nullptr;
  entry->copy = Buffer();
  return true;
}

Result<Ok, StagFault> StagTable::invalidate(std::uint32_t stag) {
  const Entry* entry = find(stag);
  if (entry == nullptr) return Failure{StagFault::Unknown};
  if (entry->right == Right::ReadSink) return Failure{StagFault::WrongRight};
  revoke(stag);
  return Ok{};
}

Result<Placement, StagFault> StagTable::sink(std::uint32_t stag, Right right, std::uint64_t offset,
                                             std::size_t length) {
  Entry* entry = find(stag);
  if (entry == nullptr) return Failure{StagFault::Unknown};
  if (entry->state == State::Revoked) return Failure{StagFault::Revoked};
  if (entry->right != right) return Failure{StagFault::WrongRight};
  if (auto fault = range_fault(entry->offset, entry->size, offset, length)) return Failure{*fault};
  const std::uint64_t from = offset - entry->offset;
  entry->touched = std::max<std::size_t>(entry->touched, from + length);
  Placement placement;
  placement.discard = entry->state == State::Discarding;
  if (!placement.discard) {
    placement.bytes = MutableBytes(entry->writable + from, length);
  }
  return placement;
}

MutableBytes StagTable::untouched_sink(std::uint32_t stag, Right right,
                                       std::uint64_t offset) const {
  const Entry* entry = find(stag);
  if (entry == nullptr || entry->state != State::Exposed || entry->right != right) return {};
  if (range_fault(entry->offset, entry->size, offset, 0)) return {};
  const std::uint64_t from = offset - entry->offset;
  if (from < entry->touched) return {};
  return MutableBytes(entry->writable, entry->size).subspan(from);
}

std::optional<std::size_t> StagTable::touched(std::uint32_t stag) const {
  const Entry* entry = find(stag);
  if (entry == nullptr || entry->right != Right::RemoteWrite) return std::nullopt;
  return entry->touched;
}

Result<Buffer, StagFault> StagTable::source(std::uint32_t stag, std::uint64_t offset,
                                            std::size_t length) const {
  const Entry* entry = find(stag);
  if (entry == nullptr) return Failure{StagFault::Unknown};
  if (entry->state == State::Revoked) return Failure{StagFault::Revoked};
  if (entry->right != Right::RemoteRead) return Failure{StagFault::WrongRight};
  if (entry->state == State::Discarding) return Failure{StagFault::Revoked};
  if (auto fault = range_fault(entry->offset, entry->size, offset, length)) return Failure{*fault};
  const std::uint64_t from = offset - entry->offset;
  if (entry->copy.owned()) return entry->copy.slice(from, length);
  return Buffer::borrow(Bytes(entry->readable + from, length));
}

std::uint32_t StagTable::fresh_stag() {
  for (;;) {
    const std::uint64_t random = entropy_.next();
    // Two candidates a draw. Zero names nothing (zero-length messages carry it); what is in the
    // table, live or lately revoked, is taken.
    for (const auto stag :
         {static_cast<std::uint32_t>(random), static_cast<std::uint32_t>(random >> 32)}) {
      if (stag != 0 && find(stag) == nullptr) return stag;
    }
  }
}

StagTable::Entry* StagTable::find(std::uint32_t stag) {
  return const_cast<Entry*>(std::as_const(*this).find(stag));
}

const StagTable::Entry* StagTable::find(std::uint32_t stag) const {
  if (entries_.empty()) return nullptr;
  const std::size_t mask = entries_.size() - 1;
  for (std::size_t at = stag & mask;; at = (at + 1) & mask) {
    const Entry& entry = entries_[at];
    if (entry.state == State::Free) return nullptr;
    if (entry.stag == stag) return &entry;
  }
}

void StagTable::insert(Entry entry) {
  const std::size_t mask = entries_.size() - 1;
  std::size_t at = entry.stag & mask;
  while (entries_[at].state != State::Free) at = (at + 1) & mask;
  entries_[at] = std::move(entry);
}

void StagTable::erase(std::uint32_t stag) {
  const std::size_t mask = entries_.size() - 1;
  auto hole = static_cast<std::size_t>(find(stag) - entries_.data());
  // An entry that was pushed past the hole moves back into it, so that every probe stays unbroken.
  for (std::size_t at = (hole + 1) & mask; entries_[at].state != State::Free;
       at = (at + 1) & mask) {
    const std::size_t home = entries_[at].stag & mask;
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    entries_[hole] = std::move(entries_[at]);
    hole = at;
  }
  entries_[hole] = Entry();
  --used_;
}

void StagTable::grow() {
  std::vector<Entry> old(entries_.empty() ? kInitialCapacity : entries_.size() * 2);
  std::swap(old, entries_);
  for (Entry& entry : old) {
    if (entry.state != State::Free) insert(std::move(entry));
  }
}

void StagTable::quarantine(std::uint32_t stag) {
  std::uint32_t& place = revoked_[revocations_ % kQuarantine];
  if (revocations_ >= kQuarantine) erase(place);
  place = stag;
  ++revocations_;
}

}  // namespace stag::iwarp
