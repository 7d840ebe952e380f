// RangeLocks: the locks on byte ranges of one file and their owners; pure, without limits, waiting
// or protocol.
//
// The locks are those of POSIX: an owner has at most one mode on each byte, a new lock replaces the
// owner's older ones, neighbouring ranges of one mode become one, and unlocking a part splits a
// range. conflict() finds locks of other owners. Every operation costs about the logarithm of the
// number of locks (range_index.h), and setting a lock also the number of locks that it replaces.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nfs/lock/range_parts.h"
#include "nfs/state/range.h"
#include "nfs/state/range_index.h"
#include "nfs/state/range_modes.h"

namespace stag::nfs::lock {

using state::range_of;
using state::RangeIndex;

// A client host. Names alone do not identify hosts: many call themselves "localhost".
struct Client {
  std::string address;
  std::string name;  // caller_name
  friend auto operator<=>(const Client&, const Client&) = default;
};

struct Owner {
  Client client;
  std::string handle;  // oh
  std::int32_t svid = 0;
  friend auto operator<=>(const Owner&, const Owner&) = default;
};
using OwnerPtr = std::shared_ptr<const Owner>;
// Orders pointers to owners by the owners; finds one by an Owner without a pointer.
struct ByOwner {
  using is_transparent = void;
  static const Owner& owner(const Owner& one) { return one; }
  static const Owner& owner(const OwnerPtr& one) { return *one; }
  template <class A, class B>
  bool operator()(const A& a, const B& b) const {
    return owner(a) < owner(b);
  }
};

struct Held {
  Range range;
  bool exclusive = false;
  OwnerPtr owner;
};

class RangeLocks {
 public:
  // The effect of setting or unlocking a range: locks that end, and locks that take their place.
  struct Change {
    std::vector<Held> gone, come;
  };

  // A lock of another owner that conflicts with this one.
  std::optional<Held> conflict(const Owner& owner, const Range& range, bool exclusive) const;
  // The locks of the owner within this range, in order.
  std::vector<Held> of(const Owner& owner, const Range& range) const;
  // The stored owner equal to this one, if it has any lock; else null.
  OwnerPtr holder(const Owner& owner) const;

  // The Change that gives `range` the mode `exclusive`, or none, for this owner.
  Change plan(const OwnerPtr& owner, const Range& range, std::optional<bool> exclusive) const;
  // Carries out a Change; no other Change came in between. All of it or, where memory runs out,
  // nothing: an owner who hears of a failure still has the locks that were to be replaced.
  void apply(const Change& change);

  // What the owner has in this range, and where in it nothing.
  RangeParts parts(const Owner& owner, const Range& range) const;
  // What gives these bytes the modes of `before`. Neighbours are not joined.
  Change plan_revert(const OwnerPtr& owner, const RangeParts& before) const;

  // Ends the locks of all owners of which which(owner) is true; calls ended(owner, count) for each.
  // Asks for no memory.
  template <class Which, class Ended>
  void release(Which&& which, Ended&& ended);

  // Raises what anybody has locked in this range.
  void locked_in(const Range& range, state::RangeModes& to) const {
    const auto raise = [&to](state::RangeMode mode) {
      return [&to, mode](const Range& held) {
        to.raise(held, mode);
        return true;
      };
    };
    shared_.each(range, raise(state::RangeMode::Shared));
    exclusive_.each(range, raise(state::RangeMode::Exclusive));
  }

  // The address of a client that has a lock: `preferred`, if one there is among the first that are
  // looked at; nullopt: nobody has.
  std::optional<std::string> locker_at(const std::string& preferred) const;

  std::size_t size() const { return size_; }
  std::vector<Held> all() const;

 private:
  // By first byte; locks of one owner do not overlap.
  using Locks = std::map<std::uint64_t, Held>;
  using Holders = std::map<OwnerPtr, Locks, ByOwner>;
  using Index = RangeIndex<Locks>;

  Index& index_of(const Held& held) { return held.exclusive ? exclusive_ : shared_; }
  void erase(const Held& held, Locks& locks);

  Holders holders_;
  // The locks of all holders, by mode.
  Index exclusive_, shared_;
  std::size_t size_ = 0;
};

template <class Which, class Ended>
void RangeLocks::release(Which&& which, Ended&& ended) {
  for (auto at = holders_.begin(); at != holders_.end();) {
    const auto here = at++;
    if (!which(*here->first)) continue;
    for (const auto& [first, held] : here->second) index_of(held).erase(held.range, &here->second);
    size_ -= here->second.size();
    ended(*here->first, here->second.size());
    holders_.erase(here);
  }
}

}  // namespace stag::nfs::lock
