// One wait that ends by the awaited event, a time limit or cancelling, whichever comes first.
#pragma once

#include <memory>
#include <optional>

#include "base/cancel.h"
#include "base/completion.h"
#include "base/loop.h"
#include "base/reason.h"

namespace stag::net {

// Made and awaited on the loop's thread: `co_await race->ended()` yields the Reason of the first
// end(). Shared, because the event that loses may come when the waiter is long gone.
class Race : public std::enable_shared_from_this<Race> {
 public:
  static std::shared_ptr<Race> start(Loop& loop, Duration limit, CancelToken token) {
    auto race = std::make_shared<Race>();
    const std::weak_ptr<Race> weak = race;
    const auto ends_with = [weak](Reason reason) {
      return [weak, reason] {
        if (const auto still = weak.lock()) still->end(reason);
      };
    };
    race->limit_ = loop.after(limit, ends_with(Reason::ConnectTimedOut));
    race->cancel_.emplace(token, ends_with(Reason::Cancelled));
    return race;
  }

  void end(Reason reason) {
    if (ended_.completed()) return;
    limit_.cancel();
    cancel_.reset();
    ended_.complete(reason);
  }
  Completion<Reason>& ended() { return ended_; }

 private:
  Timer limit_;
  std::optional<CancelCallback> cancel_;
  Completion<Reason> ended_;
};

}  // namespace stag::net
