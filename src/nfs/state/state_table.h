// Where the records of stateids stand: a stateid names the place and its generation, so that it is
// found without a search and never means anything else later.
#pragma once

#include <cstdint>
#include <deque>

#include "nfs/state/file_records.h"

namespace stag::nfs::state {

class StateTable {
 public:
  // Memory for one more, so that put() needs none.
  void make_room() {
    if (places_.size() < kFirst || free_ == 0) add_place();
  }
  void put(State& state) {
    const std::uint32_t place = first_free_;
    first_free_ = places_[place].next_free;
    --free_;
    places_[place].state = &state;
    state.place = place;
  }
  void take(State& state) {
    Place& place = places_[state.place];
    place.state = nullptr;
    ++place.generation;
    add_free(state.place);
  }
  // Null when there is none of this generation.
  State* find(std::uint32_t place, std::uint32_t generation) const {
    if (place >= places_.size() || places_[place].generation != generation) return nullptr;
    return places_[place].state;
  }
  // For a listing: places are from 0 to size(), null where nothing stands.
  std::size_t size() const { return places_.size(); }
  const State* at(std::uint32_t place) const { return places_[place].state; }
  std::uint32_t generation(const State& state) const { return places_[state.place].generation; }

 private:
  // Places are used again in the order they became free, and at first not at all: generations of
  // 32 bits then last for as long as a server runs.
  static constexpr std::size_t kFirst = 1024;

  struct Place {
    State* state = nullptr;
    std::uint32_t generation = 1;
    std::uint32_t next_free = 0;
  };
  void add_place() {
    places_.emplace_back();
    add_free(static_cast<std::uint32_t>(places_.size() - 1));
  }
  void add_free(std::uint32_t place) {
    if (free_++ == 0)
      first_free_ = place;
    else
      places_[last_free_].next_free = place;
    last_free_ = place;
  }

  std::deque<Place> places_;
  std::uint32_t first_free_ = 0, last_free_ = 0;  // when free_ is not 0
  std::size_t free_ = 0;
};

}  // namespace stag::nfs::state
