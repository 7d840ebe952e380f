#include "cli/departure.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "cli/command.h"
#include "endpoint/loops.h"
#include "net/abandon.h"

namespace stag::cli {

struct Departure::State {
  std::function<void()> last;
  endpoint::Loops loops;
  Timer timer;  // of the loop

  void leave() const {
    last();
    std::fflush(nullptr);
    net::abandon_sockets();
    // Not exit(): other threads still use what it would destroy.
    ::_exit(static_cast<int>(Exit::Failed));
  }
};

Departure::Departure(Duration time, std::function<void()> last)
    : state_(std::make_unique<State>()) {
  state_->last = std::move(last);
  net::EpollLoop& loop = state_->loops.at(0);
  endpoint::run_on(loop, [&] { state_->timer = loop.after(time, [this] { state_->leave(); }); });
}

Departure::~Departure() {
  endpoint::run_on(state_->loops.at(0), [this] { state_->timer.cancel(); });
}

}  // namespace stag::cli
