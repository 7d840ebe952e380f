#include "cli/serve/loop_watch.h"

#include <utility>

namespace stag::cli {

// Questions that are on their way keep it.
struct LoopWatch::Round {
  Loop& home;
  const std::vector<Loop*> loops;
  const Duration every;
  const std::function<void()> alive;
  std::size_t awaited = 0;  // answers
  bool ended = false;
  Timer next{};
};

LoopWatch::LoopWatch(Loop& home, std::vector<Loop*> loops, Duration every,
                     std::function<void()> alive)
    : round_(std::make_shared<Round>(Round{home, std::move(loops), every, std::move(alive)})) {
  begin(round_);
}

LoopWatch::~LoopWatch() {
  round_->ended = true;
  round_->next.cancel();
}

void LoopWatch::begin(const std::shared_ptr<Round>& round) {
  // First, in the place of the timer that has fired: the next round comes although a report finds
  // no memory.
  round->next = round->home.after(round->every, [round] { begin(round); });
  if (round->awaited != 0) return;
  // Its own loop answers, too: then there is one in any case.
  round->awaited = round->loops.size() + 1;
  round->home.post([round] { answered(round); });
  for (Loop* loop : round->loops)
    loop->post([round] { round->home.post([round] { answered(round); }); });
}

void LoopWatch::answered(const std::shared_ptr<Round>& round) {
  if (--round->awaited == 0 && !round->ended) round->alive();
}

}  // namespace stag::cli
