// Reloads: runs a blocking reload on a worker when a signal requests it, one at a time. Requests
// that arrive during a reload cause one more reload afterwards.
#pragma once

#include <functional>
#include <utility>

#include "base/loop.h"

namespace stag::cli {

// On the loop's thread.
class Reloads {
 public:
  // `reload` is called on another thread.
  Reloads(Loop& loop, std::function<void()> reload) : loop_(loop), reload_(std::move(reload)) {}
  Reloads(const Reloads&) = delete;
  Reloads& operator=(const Reloads&) = delete;

  void ask() {
    if (std::exchange(running_, true)) {
      again_ = true;
      return;
    }
    loop_.offload([this] { reload_(); },
                  [this] {
                    running_ = false;
                    if (std::exchange(again_, false)) ask();
                  });
  }

 private:
  Loop& loop_;
  const std::function<void()> reload_;
  bool running_ = false;
  bool again_ = false;
};

}  // namespace stag::cli
