#include "net/signals.h"

#include "net/loop_core.h"

namespace stag::net {

struct SignalWatch::State {
  State(asio::io_context& io, UniqueFunction<void(int)> callback)
      : signals(io), on_signal(std::move(callback)) {}
  static void wait(std::shared_ptr<State> state) {
    asio::signal_set& signals = state->signals;
    signals.async_wait(
        [state = std::move(state)](const asio::error_code& error, int number) mutable {
          if (error || state->ended) return;
          state->on_signal(number);
          if (!state->ended) wait(std::move(state));
        });
  }

  asio::signal_set signals;
  UniqueFunction<void(int)> on_signal;
  bool ended = false;
};

SignalWatch::SignalWatch(AsioLoop& loop, std::initializer_list<int> signals,
                         UniqueFunction<void(int)> on_signal)
    : state_(std::make_shared<State>(loop.core().io, std::move(on_signal))) {
  for (int number : signals) {
    asio::error_code error;
    state_->signals.add(number, error);
    CHECK(!error);  // Only a number that is no signal can fail.
  }
  State::wait(state_);
}

SignalWatch::~SignalWatch() {
  state_->ended = true;
  asio::error_code ignored;
  state_->signals.clear(ignored);
  state_->signals.cancel(ignored);
}

}  // namespace stag::net
