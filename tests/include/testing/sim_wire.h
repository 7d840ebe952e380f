// Both ends of the wire under a rpc::tcp::RecordStream, without a socket: the test is the peer and
// the network. What arrives, how much the system takes at a time and when the peer acknowledges it
// is the test's to say; readiness is told as net::Descriptor tells it.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "base/rope.h"
#include "rpc/tcp/wire.h"

namespace stag::testing {

class SimWire final {
 public:
  // The system keeps up to `room` bytes that the peer has not acknowledged.
  SimWire(Loop& loop, std::size_t room) : state_(std::make_shared<State>(loop, room)) {}

  // The end that a RecordStream has; once.
  std::unique_ptr<rpc::tcp::Wire> end() { return std::make_unique<End>(state_); }

  // The peer's bytes come in.
  void arrive(const Rope& bytes) {
    for (const Buffer& piece : bytes.pieces())
      state_->inbox.insert(state_->inbox.end(), piece.bytes().begin(), piece.bytes().end());
    state_->tell(state_->reader);
  }
  // The peer ends its direction.
  void end_of_stream() {
    state_->ended = true;
    state_->tell(state_->reader);
  }
  // The peer takes up to `most` bytes of what was written; returns how many there were.
  std::size_t take(std::size_t most) {
    const std::size_t taken = std::min(most, state_->held);
    state_->held -= taken;
    state_->taken += taken;
    // As Linux does, so that each time is worth it.
    if (taken > 0 && 3 * state_->held <= 2 * state_->room) state_->tell(state_->writer);
    return taken;
  }
  std::size_t taken() const { return state_->taken; }
  // What is written from now on can be looked at.
  void keep() { state_->keeps = true; }
  Bytes kept() const { return state_->kept; }
  std::size_t unread() const { return state_->inbox.size(); }
  bool closed() const { return state_->closed; }
  // Nothing comes any more behind what was written.
  bool output_ended() const { return state_->output_ended; }
  // Other connections of the loop wait for their turn.
  void crowd() { state_->crowded = true; }

 private:
  struct State : std::enable_shared_from_this<State> {
    State(Loop& on, std::size_t size) : loop(on), room(size) {}
    void keep(std::span<const iovec> pieces, std::size_t left) {
      for (const iovec& piece : pieces) {
        const auto* const from = static_cast<const std::byte*>(piece.iov_base);
        const std::size_t part = std::min(left, piece.iov_len);
        kept.insert(kept.end(), from, from + part);
        left -= part;
      }
    }
    // In a later turn, and only if somebody waits then.
    void tell(Loop::Function& waiting) {
      loop.post([self = shared_from_this(), &waiting] {
        if (!waiting) return;
        Loop::Function function = std::move(waiting);
        function();
      });
    }

    Loop& loop;
    const std::size_t room;
    std::deque<std::byte> inbox;
    std::size_t held = 0;
    std::size_t taken = 0;
    bool ended = false;
    bool closed = false;
    bool output_ended = false;
    bool crowded = false;
    bool keeps = false;
    std::vector<std::byte> kept;
    Loop::Function reader, writer;
  };

  class End final : public rpc::tcp::Wire {
   public:
    explicit End(std::shared_ptr<State> state) : state_(std::move(state)) {}
    ~End() override {
      state_->closed = true;
      state_->reader = {};
      state_->writer = {};
    }

    net::Transfer try_read(std::span<const iovec> pieces) override {
      if (state_->inbox.empty() && state_->ended) return {0, Reason::ConnectionClosed, true};
      std::size_t moved = 0, wanted = 0;
      for (const iovec& piece : pieces) {
        wanted += piece.iov_len;
        const std::size_t part = std::min(piece.iov_len, state_->inbox.size());
        std::copy_n(state_->inbox.begin(), part, static_cast<std::byte*>(piece.iov_base));
        state_->inbox.erase(state_->inbox.begin(),
                            state_->inbox.begin() + static_cast<std::ptrdiff_t>(part));
        moved += part;
      }
      return {moved, Reason::None, moved < wanted};
    }
    net::Transfer try_write(std::span<const iovec> pieces) override {
      std::size_t wanted = 0;
      for (const iovec& piece : pieces) wanted += piece.iov_len;
      const std::size_t moved = std::min(wanted, state_->room - state_->held);
      state_->held += moved;
      if (state_->keeps) state_->keep(pieces, moved);
      return {moved, Reason::None, moved < wanted};
    }
    void when_readable(Function&& function) override {
      state_->reader = std::move(function);
      if (!state_->inbox.empty() || state_->ended) state_->tell(state_->reader);
    }
    void when_writable(Function&& function) override {
      state_->writer = std::move(function);
      if (3 * state_->held <= 2 * state_->room) state_->tell(state_->writer);
    }
    bool crowded() const override { return state_->crowded; }
    std::size_t unacknowledged() const override { return state_->held; }
    void end_output() override { state_->output_ended = true; }
    void close() override { state_->closed = true; }
    Address peer() const override { return {"192.0.2.7", 700}; }
    Address local() const override { return {"192.0.2.1", 2049}; }
    Loop& loop() const override { return state_->loop; }

   private:
    std::shared_ptr<State> state_;
  };

  std::shared_ptr<State> state_;
};

}  // namespace stag::testing
