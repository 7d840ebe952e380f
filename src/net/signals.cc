#include "net/signals.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/failure.h"
#include "net/descriptor.h"

namespace stag::net {
namespace {

// Numbers of signals that have arrived. Never closed: a handler may still be running on any thread.
struct SignalPipe {
  SignalPipe() { STAG_CHECK(pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0); }
  int ends[2];
};

SignalPipe& signal_pipe() {
  static SignalPipe pipe;
  return pipe;
}

std::atomic<int> handler_end = -1;
std::atomic<bool> watched = false;

void on_signal_arrival(int number) {
  const int saved = errno;
  const auto byte = static_cast<unsigned char>(number);
  // Full: so many have arrived that one more says nothing new.
  static_cast<void>(!write(handler_end, &byte, 1));
  errno = saved;
}

}  // namespace

int signal_arrivals() {
  return signal_pipe().ends[0];
}

void hold_signal(int number) {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  pthread_sigmask(SIG_BLOCK, &one, nullptr);
}

struct SignalWatch::State {
  State(EpollLoop& loop, UniqueFunction<void(int)> callback, std::initializer_list<int> asking)
      : on_signal(std::move(callback)), requests(asking) {
    auto reading =
        Descriptor::watch(loop, UniqueFd(fcntl(signal_pipe().ends[0], F_DUPFD_CLOEXEC, 0)));
    STAG_CHECK(reading.ok());
    pipe = *std::move(reading);
    handler_end = signal_pipe().ends[1];
  }

  void take_over(int number) {
    struct sigaction action {};
    action.sa_handler = on_signal_arrival;
    action.sa_flags = SA_RESTART;
    sigfillset(&action.sa_mask);
    struct sigaction before {};
    // Only a number that is no signal can fail.
    STAG_CHECK(sigaction(number, nullptr, &before) == 0);
    // nohup(1): what ends the terminal does not end this process. SIGINT is ignored by all that a
    // script runs in the background, which it may end by it all the same.
    const bool of_nohup = number == SIGHUP && before.sa_handler == SIG_IGN;
    if (of_nohup && std::ranges::count(requests, number) == 0) return;
    sigaction(number, &action, nullptr);
    replaced.emplace_back(number, before);
  }
  // Those that wait arrive at once.
  void open() {
    sigset_t all;
    sigemptyset(&all);
    for (const auto& [number, before] : replaced) sigaddset(&all, number);
    pthread_sigmask(SIG_UNBLOCK, &all, &mask);
  }
  void give_back() {
    pthread_sigmask(SIG_SETMASK, &mask, nullptr);
    for (const auto& [number, before] : replaced) sigaction(number, &before, nullptr);
    while (next() != 0) {
    }
  }
  // 0: none.
  int next() const {
    unsigned char number = 0;
    return read(pipe.fd(), &number, 1) == 1 ? number : 0;
  }
  static void wait(const std::shared_ptr<State>& state) {
    state->pipe.when_readable([weak = std::weak_ptr<State>(state)] {
      if (const auto still = weak.lock()) serve(still);
    });
  }
  static void serve(const std::shared_ptr<State>& state) {
    while (!state->ended) {
      const int number = state->next();
      if (number == 0) {
        state->pipe.mark_unreadable();
        return wait(state);
      }
      state->tell(number);
    }
  }
  // Whatever comes of one signal, the next ones are heard.
  void tell(int number) {
    try {
      on_signal(number);
    } catch (...) {
      trace_exception(Reason::LoopFunctionFailed, "signal");
    }
  }

  Descriptor pipe;
  UniqueFunction<void(int)> on_signal;
  const std::vector<int> requests;
  std::vector<std::pair<int, struct sigaction>> replaced;
  sigset_t mask{};  // that of the thread before
  bool ended = false;
};

SignalWatch::SignalWatch(EpollLoop& loop, std::initializer_list<int> signals,
                         UniqueFunction<void(int)> on_signal, std::initializer_list<int> requests)
    : state_(std::make_shared<State>(loop, std::move(on_signal), requests)) {
  STAG_CHECK(!watched.exchange(true));
  for (int number : signals) state_->take_over(number);
  state_->open();
  State::wait(state_);
}

SignalWatch::~SignalWatch() {
  state_->ended = true;
  state_->give_back();
  state_->pipe.close();
  watched = false;
}

}  // namespace stag::net
