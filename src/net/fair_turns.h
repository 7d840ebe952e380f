// Which user of a loop is told first when the loop has several to tell: those that have used the
// least of its time lately. What one has used is halved every few milliseconds, so that it is soon
// forgiven, and everybody's turn comes. Pure: time is an argument.
//
// Connections of one client address share what they have used: many of them get no more than one.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/loop.h"

namespace stag::net {

// What some descriptors together have used of a loop.
class Usage {
 public:
  void charge(Duration spent) { used_ += spent; }
  // What counts of it at `now`.
  Duration at(TimePoint now) {
    const auto periods = (now - since_) / kHalving;
    if (periods <= 0) return used_;
    used_ = periods < kForgotten ? used_ / (std::int64_t{1} << periods) : Duration::zero();
    since_ += periods * kHalving;
    return used_;
  }

 private:
  static constexpr Duration kHalving = std::chrono::milliseconds(8);
  static constexpr std::int64_t kForgotten = 40;  // halvings

  Duration used_{};
  TimePoint since_{};
};

// One for each name, as long as anybody has it.
class SharedUsage {
 public:
  std::shared_ptr<Usage> of(const std::string& name) {
    std::weak_ptr<Usage>& known = known_[name];
    std::shared_ptr<Usage> usage = known.lock();
    if (usage == nullptr) known = usage = std::make_shared<Usage>();
    if (known_.size() > 2 * kept_ + kFew) drop_unused();
    return usage;
  }
  std::size_t size() const { return known_.size(); }

 private:
  static constexpr std::size_t kFew = 64;

  // Often enough that names nobody has are never more than those in use, and a few.
  void drop_unused() {
    std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
    kept_ = known_.size();
  }

  std::unordered_map<std::string, std::weak_ptr<Usage>> known_;
  std::size_t kept_ = 0;  // when it was last looked through
};

// Those who are to be told, the one who has used least first; of several the one added first.
template <class T>
class FairOrder {
 public:
  // For so many at once nothing here asks for memory.
  void reserve(std::size_t count) { heap_.reserve(count); }
  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }

  // While it is filled; then order(), then next() until it is empty.
  void add(T* one, Duration used = {}) { heap_.push_back({used, heap_.size(), one}); }
  template <class UsedBy>
  void order(UsedBy&& used_by) {
    for (Place& place : heap_)
      if (place.one != nullptr) place.used = used_by(*place.one);
    std::make_heap(heap_.begin(), heap_.end(), after);
  }
  // Null: it was forgotten.
  T* next() {
    std::pop_heap(heap_.begin(), heap_.end(), after);
    T* const one = heap_.back().one;
    heap_.pop_back();
    return one;
  }
  void forget(const T* one) {
    for (Place& place : heap_)
      if (place.one == one) place.one = nullptr;
  }

 private:
  struct Place {
    Duration used{};
    std::size_t number = 0;
    T* one = nullptr;
  };
  static bool after(const Place& a, const Place& b) {
    return std::tie(a.used, a.number) > std::tie(b.used, b.number);
  }
  std::vector<Place> heap_;
};

}  // namespace stag::net
