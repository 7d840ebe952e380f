// Whoever knows names takes his time (a directory service): he is asked on a worker, for a bounded
// time, and what he said is kept for a while, also that there is nothing to say.
#pragma once

#include <coroutine>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/executor.h"
#include "base/loop.h"
#include "base/unique_function.h"

namespace stag::nfs {

// What was said of each key; the oldest answers go where there are too many. Thread: one at a time.
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
    return at == answers_.end() ? nullptr : &at->second;
  }
  void keep(const Key& key, Answer answer) {
    const auto [at, fresh] = answers_.insert_or_assign(key, std::move(answer));
    if (!fresh) return;
    order_.push_back(at);
    if (order_.size() <= most_) return;
    answers_.erase(order_.front());
    order_.pop_front();
  }
  void clear() {
    order_.clear();
    answers_.clear();
  }
  std::size_t size() const { return answers_.size(); }

 private:
  using Map = std::map<Key, Answer>;
  const std::size_t most_;
  Map answers_;
  std::deque<typename Map::iterator> order_;
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
