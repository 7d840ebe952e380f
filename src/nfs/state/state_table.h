// Where the records of stateids stand: a stateid names the place and its tag, so that it is found
// without a search, means nothing else later, and cannot be guessed. In version 4.0 the stateid
// alone says who asks (RFC 7530 9.1.4.4), and a client that has one could count up to another's.
#pragma once

#include <cstdint>
#include <deque>
#include <span>

#include "base/siphash.h"
#include "nfs/state/file_records.h"

namespace stag::nfs::state {

class StateTable {
 public:
  // Of so many bits: a client that tries a hundred thousand a second finds the one of a place in
  // decades.
  static constexpr int kTagBits = 48;

  // The tables of a server differ in `number`.
  StateTable(std::uint32_t number, std::uint32_t epoch, const SipKey& key)
      : number_(number), epoch_(epoch), key_(key) {}

  // Memory for one more, so that put() needs none.
  void make_room() {
    if (places_.size() < kFirst || free_ == 0) add_place();
  }
  void put(State& state) {
    state.place = first_free_;
    Place& place = places_[state.place];
    first_free_ = static_cast<std::uint32_t>(place.tag_or_next);
    --free_;
    place = {&state, next_tag()};
  }
  void take(State& state) {
    places_[state.place].state = nullptr;
    add_free(state.place);
  }
  // Null when there is none with this tag.
  State* find(std::uint32_t place, std::uint64_t tag) const {
    if (place >= places_.size() || places_[place].tag_or_next != tag) return nullptr;
    return places_[place].state;
  }
  // For a listing: places are from 0 to size(), null where nothing stands.
  std::size_t size() const { return places_.size(); }
  const State* at(std::uint32_t place) const { return places_[place].state; }
  std::uint64_t tag(const State& state) const { return places_[state.place].tag_or_next; }

 private:
  // Places are used again in the order they became free, and at first not at all: an old stateid
  // meets few others in its place, each of which could have its tag by chance.
  static constexpr std::size_t kFirst = 1024;

  struct Place {
    State* state = nullptr;
    std::uint64_t tag_or_next = 0;  // where there is no state, the place that is free next
  };
  void add_place() {
    places_.emplace_back();
    add_free(static_cast<std::uint32_t>(places_.size() - 1));
  }
  void add_free(std::uint32_t place) {
    if (free_++ == 0)
      first_free_ = place;
    else
      places_[last_free_].tag_or_next = place;
    last_free_ = place;
  }
  std::uint64_t next_tag() {
    const std::uint64_t words[] = {std::uint64_t{epoch_} << 32 | number_, ++last_tag_};
    SipHash hash(key_);
    hash.add(bytes_of("STATEID"));
    hash.add(std::as_bytes(std::span(words)));
    return hash.finish() >> (64 - kTagBits);
  }

  const std::uint32_t number_;
  const std::uint32_t epoch_;
  const SipKey key_;
  std::uint64_t last_tag_ = 0;
  std::deque<Place> places_;
  std::uint32_t first_free_ = 0, last_free_ = 0;  // when free_ is not 0
  std::size_t free_ = 0;
};

}  // namespace stag::nfs::state
