// The inside of Descriptor; included by .cc files of net.
#pragma once

#include <utility>

#include "net/descriptor.h"
#include "net/loop_core.h"

namespace stag::net {

struct Descriptor::State final : Watched {
  struct Side {
    Function waiting;
    Reader* reader = nullptr;  // waits instead
    // Since the last event nobody has found out that there is no more to be had.
    bool ready = false;
    // And nobody will: the peer has ended the stream, which is said only once.
    bool for_good = false;

    [[gnu::noinline]] void drop() { waiting = {}; }
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
    requeue_if_ready(side, event);
  }
  void requeue_if_ready(const Side& side, std::uint32_t event) {
    if (side.ready || side.for_good || !fd) loop.core().requeue_event(*this, event);
  }
  void wait(Reader& reader) {
    if (reading.waiting) reading.drop();
    reading.reader = &reader;
    requeue_if_ready(reading, EPOLLIN);
  }
  void mark_read() { loop.core().has_read(*this); }
  void mark_unreadable() { reading.ready = false; }
  void mark_unwritable() { writing.ready = false; }
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
  // The waiter is taken out first: it may destroy all this, or wait again.
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

}  // namespace stag::net
