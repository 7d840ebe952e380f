// FirstAnswer<T>: what a coroutine waits for, but not longer than it has patience.
//
//   FirstAnswer<bool> gone(loop);
//   files.wait(file, [tell = gone.from_anywhere()] { tell(true); });
//   const bool in_time = co_await gone.within(1s, false);
//
// Of two answers the second finds nobody waiting. Thread: the loop's, but for what from_anywhere()
// gives.
#pragma once

#include <memory>
#include <utility>

#include "base/completion.h"
#include "base/loop.h"
#include "base/task.h"

namespace stag {

template <class T>
class FirstAnswer {
 public:
  // The loop outlives all that may answer.
  explicit FirstAnswer(Loop& loop) : loop_(loop) {}

  // To be called with the answer, on any thread, or never; may outlive the FirstAnswer.
  auto from_anywhere() const {
    return [&loop = loop_, first = first_](T answer) {
      loop.post([first, answer = std::move(answer)] { give(*first, answer); });
    };
  }
  // The answer, or `late` where there is none in this time. Once.
  Task<T> within(Duration patience, T late) {
    const Timer limit = loop_.after(patience, [first = first_, late] { give(*first, late); });
    co_return co_await *first_;
  }

 private:
  static void give(Completion<T>& first, T answer) {
    if (!first.completed()) first.complete(std::move(answer));
  }

  Loop& loop_;
  const std::shared_ptr<Completion<T>> first_ = std::make_shared<Completion<T>>();
};

}  // namespace stag
