#include "net/descriptor.h"

#include <cerrno>
#include <utility>

#include "net/loop_core.h"
#include "net/system_error.h"

namespace stag::net {

struct Descriptor::State final : Watched {
  struct Side {
    Function waiting;
    Reader* reader = nullptr;  // waits instead
    // Since the last event nobody has found out that there is no more to be had.
    bool ready = false;
    // And nobody will: the peer has ended the stream, which is said only once.
    bool for_good = false;
  };

  State(EpollLoop& owner, UniqueFd taken) : loop(owner), fd(std::move(taken)) {}
  ~State() {
    release();
    loop.core().forget(*this);
  }

  UniqueFd release() {
    if (fd) loop.core().unwatch(fd.fd(), *this);
    return std::move(fd);
  }
  void wait(Side& side, std::uint32_t event, Function&& function) {
    side.waiting = std::move(function);
    side.reader = nullptr;
    tell_again(side, event);
  }
  void tell_again(const Side& side, std::uint32_t event) {
    if (side.ready || side.for_good || !fd) loop.core().requeue_event(*this, event);
  }
  void on_readable(std::uint32_t events) override {
    if ((events & (EPOLLRDHUP | EPOLLHUP)) != 0) reading.for_good = true;
    reading.ready = true;
    run(reading);
  }
  void on_writable(std::uint32_t events) override {
    if ((events & EPOLLHUP) != 0) writing.for_good = true;
    writing.ready = true;
    run(writing);
  }
  void try_reading() override { run(reading); }
  // Who waits is taken out first: it may destroy all this, or wait again.
  static void run(Side& side) {
    if (Reader* const reader = std::exchange(side.reader, nullptr)) return reader->on_readable();
    if (!side.waiting) return;
    Function function = std::move(side.waiting);
    function();
  }

  EpollLoop& loop;
  UniqueFd fd;
  Side reading;
  Side writing;
};

Result<Descriptor, Reason> Descriptor::watch(EpollLoop& loop, UniqueFd fd) {
  auto state = std::make_unique<State>(loop, std::move(fd));
  if (!loop.core().watch(state->fd.fd(), *state)) return Failure{reason_of_errno(errno)};
  return Descriptor(std::move(state));
}

Descriptor::Descriptor(std::unique_ptr<State> state) : state_(std::move(state)) {}
Descriptor::Descriptor() = default;
Descriptor::Descriptor(Descriptor&& other) noexcept = default;

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

Descriptor::~Descriptor() = default;

int Descriptor::fd() const {
  return state_ == nullptr ? -1 : state_->fd.fd();
}

EpollLoop& Descriptor::loop() const {
  STAG_CHECK(state_ != nullptr);
  return state_->loop;
}

void Descriptor::when_readable(Function&& function) {
  STAG_CHECK(state_ != nullptr);
  state_->wait(state_->reading, EPOLLIN, std::move(function));
}

void Descriptor::when_readable(Reader& reader) {
  STAG_CHECK(state_ != nullptr);
  if (state_->reading.waiting) state_->reading.waiting = {};
  state_->reading.reader = &reader;
  state_->tell_again(state_->reading, EPOLLIN);
}

void Descriptor::when_writable(Function&& function) {
  STAG_CHECK(state_ != nullptr);
  state_->wait(state_->writing, EPOLLOUT, std::move(function));
}

void Descriptor::ignore_readable() {
  if (state_ == nullptr) return;
  state_->reading.waiting = {};
  state_->reading.reader = nullptr;
}

void Descriptor::share_usage(const std::string& name) {
  if (state_ != nullptr) state_->usage = state_->loop.core().usage.of(name);
}

bool Descriptor::crowded() const {
  return state_ != nullptr && state_->loop.core().crowded();
}

void Descriptor::mark_read() {
  if (state_ != nullptr) state_->loop.core().has_read(*state_);
}

void Descriptor::mark_unreadable() {
  if (state_ != nullptr) state_->reading.ready = false;
}

void Descriptor::mark_unwritable() {
  if (state_ != nullptr) state_->writing.ready = false;
}

UniqueFd Descriptor::release() {
  if (closed()) return {};
  UniqueFd fd = state_->release();
  // Now, on the loop's thread: what is left of this may go with the descriptor to another.
  state_.reset();
  return fd;
}

void Descriptor::close() {
  if (closed()) return;
  const UniqueFd closed = state_->release();
  if (state_->reading.waiting || state_->reading.reader != nullptr || state_->writing.waiting)
    state_->loop.core().requeue_event(*state_, EPOLLIN | EPOLLOUT);
}

}  // namespace stag::net
