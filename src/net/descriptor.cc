#include "net/descriptor.h"

#include <cerrno>
#include <utility>

#include "net/descriptor_state.h"
#include "net/system_error.h"

namespace stag::net {

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
  state_->wait(reader);
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
  if (state_ != nullptr) state_->mark_read();
}

void Descriptor::mark_unreadable() {
  if (state_ != nullptr) state_->mark_unreadable();
}

void Descriptor::mark_unwritable() {
  if (state_ != nullptr) state_->mark_unwritable();
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
