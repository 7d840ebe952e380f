// A naming or directory service may be slow. The server asks it on a worker, for a bounded time,
// and keeps its answers for a while, also the answer that there is nothing.
#pragma once

#include <coroutine>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/executor.h"
#include "base/loop.h"
#include "base/unique_function.h"

namespace stag::nfs {

// What was said of each key; where there are too many, the answer goes that nobody has wanted for
// longest, so that many strangers do not displace clients that are there. A group of keys that has
// more than its share by then displaces its own. Thread: one at a time.
template <class Key, class Value>
class Answers {
 public:
  struct Answer {
    std::optional<Value> value;  // nullopt: there is none
    TimePoint until;
  };

  using GroupOf = std::uint64_t (*)(const Key&);

  // All keys are one group.
  explicit Answers(std::size_t most)
      : Answers(most, most, [](const Key&) { return std::uint64_t{0}; }) {}
  Answers(std::size_t most, std::size_t share, GroupOf group_of)
      : most_(most), share_(share), group_of_(group_of) {}
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;

  // Null: nothing was said. One that is old is better than none.
  const Answer* find(const Key& key) const {
    const auto at = answers_.find(key);
    if (at == answers_.end()) return nullptr;
    const Kept& kept = at->second;
    order_.splice(order_.end(), order_, kept.place);
    Order& of_group = kept.group->second;
    of_group.splice(of_group.end(), of_group, kept.place_in_group);
    return &at->second.answer;
  }
  void keep(const Key& key, Answer answer) {
    if (const auto at = answers_.find(key); at != answers_.end()) {
      at->second.answer = std::move(answer);
      return;
    }
    const auto group = groups_.try_emplace(group_of_(key)).first;
    try {
      add(key, std::move(answer), group);
    } catch (...) {
      if (group->second.empty()) groups_.erase(group);
      throw;
    }
    if (order_.size() <= most_) return;
    const Order& whose = group->second.size() > share_ ? group->second : order_;
    remove(answers_.find(*whose.front()));
  }
  void erase(const Key& key) {
    const auto at = answers_.find(key);
    if (at != answers_.end()) remove(at);
  }
  std::size_t size() const { return answers_.size(); }

 private:
  using Order = std::list<const Key*>;  // the one wanted last is last
  using Groups = std::map<std::uint64_t, Order>;
  struct Kept {
    Answer answer;
    typename Order::iterator place;
    typename Groups::iterator group;
    typename Order::iterator place_in_group;
  };
  using Table = std::map<Key, Kept>;

  void add(const Key& key, Answer&& answer, typename Groups::iterator group) {
    Order place(1), place_in_group(1);
    const auto at = answers_.emplace(
        key, Kept{std::move(answer), place.begin(), group, place_in_group.begin()});
    place.front() = place_in_group.front() = &at.first->first;
    order_.splice(order_.end(), place);
    group->second.splice(group->second.end(), place_in_group);
  }
  void remove(typename Table::iterator at) {
    const Kept& kept = at->second;
    order_.erase(kept.place);
    kept.group->second.erase(kept.place_in_group);
    if (kept.group->second.empty()) groups_.erase(kept.group);
    answers_.erase(at);
  }

  const std::size_t most_;
  const std::size_t share_;
  const GroupOf group_of_;
  Table answers_;
  mutable Order order_;
  Groups groups_;
};

// co_await Asked{...}: goes on when `work` has run on the worker, or was refused, or has taken too
// long. The work goes on then without anybody who waits. `client` as of Executor::Job.
struct Asked {
  // Of the loop's thread.
  struct Wait {
    std::coroutine_handle<> waiter;
    bool over = false;
    void end() {
      if (!std::exchange(over, true)) waiter.resume();
    }
  };

  Loop& loop;
  Executor& worker;
  const void* client;
  Duration patience;
  UniqueFunction<void()> work;
  Timer timer{};

  bool await_ready() const { return false; }
  bool await_suspend(std::coroutine_handle<> waiter) {
    const auto wait = std::make_shared<Wait>();
    wait->waiter = waiter;
    timer = loop.after(patience, [wait] { wait->end(); });
    if (loop.offload_to(worker, client, 0, std::move(work), [wait] { wait->end(); })) return true;
    wait->over = true;
    return false;
  }
  void await_resume() const {}
};

}  // namespace stag::nfs
