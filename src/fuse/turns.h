// Turns: operations on one file, or on the locks that one owner has of it, that must not overtake
// each other at the server. One that is alone begins when those before it have ended, and those
// that come later wait for it; others go on together.
//
// Pure. Thread: the loop of the Mount.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <utility>

#include "base/task.h"
#include "fuse/waiters.h"

namespace stag::fuse {

class Turns {
 public:
  // What is operated on.
  struct Key {
    Key(std::uint64_t file, std::uint64_t space = 0, std::uint64_t owner = 0)
        : file(file), space(space), owner(owner) {}
    friend auto operator<=>(const Key&, const Key&) = default;

    std::uint64_t file, space, owner;
  };

  // An operation in progress, until this is destroyed. The Turns outlive it.
  class Turn {
   public:
    Turn(Turn&& other) noexcept
        : all_(std::exchange(other.all_, nullptr)), key_(other.key_), alone_(other.alone_) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (all_ != nullptr) all_->end(key_, alone_);
    }

   private:
    friend class Turns;
    Turn(Turns& all, const Key& key, bool alone) : all_(&all), key_(key), alone_(alone) {}

    Turns* all_;
    Key key_;
    bool alone_;
  };

  Task<Turn> alone(Key key);
  Task<Turn> together(Key key);
  // Whether one that is alone is in progress, or waits for those before it.
  bool taken(const Key& key) const;

 private:
  struct Operations {
    bool alone = false;
    std::uint32_t together = 0;
  };
  void end(const Key& key, bool alone);

  std::map<Key, Operations> running_;
  Waiters waiters_;  // for one to end
};

}  // namespace stag::fuse
