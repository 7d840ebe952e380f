// Soon: runs something a while after it was asked for, once for all who ask until then.
//
// Thread: the loop's.
#pragma once

#include <utility>

#include "base/loop.h"
#include "base/unique_function.h"

namespace stag::fuse {

class Soon {
 public:
  Soon(Loop& loop, Duration after, UniqueFunction<void()> run)
      : loop_(loop), after_(after), run_(std::move(run)) {}

  // Throws without memory for it; the next caller is not taken for one of many then.
  void ask() {
    if (asked_) return;
    timer_ = loop_.after(after_, [this] {
      asked_ = false;
      run_();
    });
    asked_ = true;
  }
  // It does not run any more, whichever caller asks.
  void end() {
    timer_.cancel();
    asked_ = true;
  }

 private:
  Loop& loop_;
  Duration after_;
  UniqueFunction<void()> run_;
  bool asked_ = false;
  Timer timer_;
};

}  // namespace stag::fuse
