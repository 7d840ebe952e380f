// Whoever knows names takes his time (a directory service): he is asked on a worker, for a bounded
// time, and what he said is kept for a while, also that there is nothing to say.
#pragma once

#include <coroutine>
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
// longest, so that many strangers do not displace whoever is there. Thread: one at a time.
template <class Key, class Value>
class Answers {
 public:
  struct Answer {
    std::optional<Value> value;  // nullopt: there is none
    TimePoint until;
  };

  explicit Answers(std::size_t most) : most_(most) {}

  // Null: nothing was said. One that is old is better than none.
  const Answer* find(const Key& key) const {
    const auto at = answers_.find(key);
    if (at == answers_.end()) return nullptr;
    order_.splice(order_.end(), order_, at->second.place);
    return &at->second.answer;
  }
  void keep(const Key& key, Answer answer) {
    if (const auto at = answers_.find(key); at != answers_.end()) {
      at->second.answer = std::move(answer);
      return;
    }
    Order place{key};
    answers_.emplace(key, Kept{std::move(answer), place.begin()});
    order_.splice(order_.end(), place);
    if (order_.size() <= most_) return;
    answers_.erase(order_.front());
    order_.pop_front();
  }
  void erase(const Key& key) {
    const auto at = answers_.find(key);
    if (at == answers_.end()) return;
    order_.erase(at->second.place);
    answers_.erase(at);
  }
  void clear() {
    order_.clear();
    answers_.clear();
  }
  std::size_t size() const { return answers_.size(); }

 private:
  using Order = std::list<Key>;
  struct Kept {
    Answer answer;
    typename Order::iterator place;
  };
  const std::size_t most_;
  std::map<Key, Kept> answers_;
  mutable Order order_;  // the one wanted last is last
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
