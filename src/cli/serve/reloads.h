// Reloads: runs a blocking reload on a worker when a signal requests it, one at a time. Requests
// that arrive during a reload cause one more reload afterwards.
#pragma once

#include <functional>
#include <utility>

#include "base/failure.h"
#include "base/loop.h"
#include "base/reason.h"

namespace stag::cli {

// On the loop's thread.
class Reloads {
 public:
  struct Steps {
    std::function<void()> reload;  // on another thread
    std::function<void()> done;    // not after end()
  };
  Reloads(Loop& loop, Steps steps) : loop_(loop), steps_(std::move(steps)) {}
  Reloads(const Reloads&) = delete;
  Reloads& operator=(const Reloads&) = delete;

  void ask() {
    if (ended_) return;
    if (std::exchange(running_, true)) {
      again_ = true;
      return;
    }
    try {
      run([this] { steps_.reload(); }, [this] { finish(); });
    } catch (...) {
      retry_ = loop_.after(kAgain, [this] { ask(); });
      throw;
    }
  }

  bool idle() const { return !running_ && !ended_; }
  // While it is idle: does `work` on another thread, and no reload runs beside it.
  void look(std::function<void()> work) {
    running_ = true;
    run(std::move(work), [this] { finish_look(); });
  }

  // Takes no further request. `ended` is called when no reload runs, and so maybe at once. Until
  // then the Reloads, and what the reload uses, stay.
  void end(std::function<void()> ended) {
    ended_ = std::move(ended);
    if (!running_) ended_();
  }

 private:
  static constexpr Duration kAgain = std::chrono::seconds(1);

  // Where there is no memory to begin it nothing runs, and the next request need not wait.
  void run(Loop::Function work, Loop::Function done) {
    try {
      loop_.offload(std::move(work), std::move(done));
    } catch (...) {
      running_ = false;
      throw;
    }
  }
  void finish() {
    running_ = false;
    if (ended_) return ended_();
    try {
      steps_.done();
    } catch (...) {
      trace_exception(Reason::TaskFailed, "reload");
    }
    if (std::exchange(again_, false)) ask();
  }
  void finish_look() {
    running_ = false;
    if (ended_) return ended_();
    if (std::exchange(again_, false)) ask();
  }

  Loop& loop_;
  const Steps steps_;
  std::function<void()> ended_;
  bool running_ = false;
  bool again_ = false;
  Timer retry_;  // of a request that there was no memory for
};

}  // namespace stag::cli
