#include "net/descriptor.h"

#include <utility>

#include "net/loop_core.h"
#include "net/system_error.h"

namespace stag::net {

struct Descriptor::State {
  using Stream = asio::posix::stream_descriptor;
  struct Waiter {
    Function function;
    bool waiting = false;
  };

  explicit State(AsioLoop& owner) : loop(owner), stream(owner.core().io) {}

  static void wait(const std::shared_ptr<State>& state, Waiter State::*side, Stream::wait_type type,
                   Function function) {
    Waiter& waiter = (*state).*side;
    waiter.function = std::move(function);
    if (std::exchange(waiter.waiting, true)) return;
    state->stream.async_wait(type, [state, side](const asio::error_code&) {
      Waiter& ended = (*state).*side;
      ended.waiting = false;
      if (Function ready = std::move(ended.function)) ready();
    });
  }

  AsioLoop& loop;
  Stream stream;
  Waiter reading;
  Waiter writing;
};

Result<Descriptor, Reason> Descriptor::watch(AsioLoop& loop, UniqueFd fd) {
  auto state = std::make_shared<State>(loop);
  asio::error_code error;
  state->stream.assign(fd.fd(), error);
  if (error) return Failure{reason_of_errno(error.value())};
  fd.release();
  return Descriptor(std::move(state));
}

Descriptor::Descriptor(std::shared_ptr<State> state) : state_(std::move(state)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

Descriptor::~Descriptor() {
  if (state_ == nullptr) return;
  state_->reading.function = {};
  state_->writing.function = {};
  close();
}

int Descriptor::fd() const {
  if (state_ == nullptr || !state_->stream.is_open()) return -1;
  return state_->stream.native_handle();
}

AsioLoop& Descriptor::loop() const {
  CHECK(state_ != nullptr);
  return state_->loop;
}

void Descriptor::when_readable(Function function) {
  CHECK(state_ != nullptr);
  State::wait(state_, &State::reading, State::Stream::wait_read, std::move(function));
}

void Descriptor::when_writable(Function function) {
  CHECK(state_ != nullptr);
  State::wait(state_, &State::writing, State::Stream::wait_write, std::move(function));
}

void Descriptor::ignore_readable() {
  if (state_ != nullptr) state_->reading.function = {};
}

UniqueFd Descriptor::release() {
  if (closed()) return {};
  state_->reading.function = {};
  state_->writing.function = {};
  return UniqueFd(state_->stream.release());
}

void Descriptor::close() {
  if (state_ == nullptr) return;
  asio::error_code ignored;
  state_->stream.close(ignored);
}

}  // namespace stag::net
