// Values by XID or handle, for the Calls in progress of one connection. Open addressing. XIDs count
// upwards: places far from one another keep those in progress from becoming one row, which taking
// the oldest out would have to go through. A peer that makes keys collide costs as many steps at
// most as there are Calls in progress. Grows with them, never shrinks; nothing is allocated in
// steady state.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace stag {

template <class Value>
class KeyTable {
 public:
  // Null when there is none; valid until the table changes.
  Value* find(std::uint32_t key) {
    Entry* const entry = entry_of(key);
    return entry == nullptr ? nullptr : &entry->value;
  }
  const Value* find(std::uint32_t key) const { return const_cast<KeyTable*>(this)->find(key); }
  bool contains(std::uint32_t key) const { return find(key) != nullptr; }

  // The value of this key, made if there is none yet.
  Value& operator[](std::uint32_t key) {
    make_room();
    Entry& entry = entries_[place_of(key)];
    if (!entry.used) {
      ++size_;
      entry = {key, true, Value()};
    }
    return entry.value;
  }

  // Out of the table; null when it was not there.
  std::optional<Value> take(std::uint32_t key) {
    Entry* const entry = entry_of(key);
    if (entry == nullptr) return std::nullopt;
    const Value value = entry->value;
    remove(static_cast<std::size_t>(entry - entries_.data()));
    return value;
  }
  void erase(std::uint32_t key) { static_cast<void>(take(key)); }
  // One that find() has found.
  void erase(const Value* value) {
    const auto* const at = reinterpret_cast<const std::byte*>(value);
    const auto* const begin = reinterpret_cast<const std::byte*>(entries_.data());
    remove(static_cast<std::size_t>(at - begin) / sizeof(Entry));
  }
  // False when there is one with this key already.
  bool insert(std::uint32_t key, const Value& value) {
    make_room();
    Entry& entry = entries_[place_of(key)];
    if (entry.used) return false;
    ++size_;
    entry = {key, true, value};
    return true;
  }
  // The next `count` keys are put in without asking for memory.
  void make_room(std::size_t count = 1) {
    while (2 * (size_ + count) > entries_.size()) grow();
  }
  // function(key, value) for each, in any order; it does not change the table.
  template <class Function>
  void for_each(Function function) const {
    for (const Entry& entry : entries_)
      if (entry.used) function(entry.key, entry.value);
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  struct Entry {
    std::uint32_t key = 0;
    bool used = false;
    Value value{};
  };

  std::size_t after(std::size_t place) const { return (place + 1) & last_; }
  // Fibonacci hashing: each next key is 0.618 of the table further on.
  std::size_t home(std::uint32_t key) const { return (key * std::uint32_t{0x9e3779b9}) >> shift_; }
  // How far `place` is behind `from`.
  std::size_t distance(std::size_t from, std::size_t place) const { return (place - from) & last_; }

  // Where it is, or could be. At most half of the places are taken: every search ends.
  std::size_t place_of(std::uint32_t key) const {
    std::size_t place = home(key);
    while (entries_[place].used && entries_[place].key != key) place = after(place);
    return place;
  }
  Entry* entry_of(std::uint32_t key) {
    if (size_ == 0) return nullptr;
    Entry& entry = entries_[place_of(key)];
    return entry.used ? &entry : nullptr;
  }
  void remove(std::size_t place) {
    close_gap(place);
    --size_;
  }
  void grow() {
    std::vector<Entry> before(entries_.empty() ? kFirstSize : 2 * entries_.size());
    std::swap(before, entries_);
    last_ = entries_.size() - 1;
    shift_ = std::countl_zero(static_cast<std::uint32_t>(last_));
    for (const Entry& entry : before)
      if (entry.used) entries_[place_of(entry.key)] = entry;
  }
  // Entries behind the gap move up, as far as they may without passing their home.
  void close_gap(std::size_t gap) {
    for (std::size_t place = after(gap); entries_[place].used; place = after(place)) {
      if (distance(home(entries_[place].key), place) < distance(gap, place)) continue;
      entries_[gap] = entries_[place];
      gap = place;
    }
    entries_[gap].used = false;
  }

  static constexpr std::size_t kFirstSize = 8;  // a power of two, like every later size
  std::vector<Entry> entries_;
  std::size_t last_ = 0;  // place; each of its bits is set
  int shift_ = 0;         // leaves as many bits as it takes to count the places
  std::size_t size_ = 0;
};

}  // namespace stag
