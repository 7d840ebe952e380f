// Wire: the bytes under a RecordStream. A TCP socket in production; tests have one whose time, room
// and order they decide.
#pragma once

#include <span>

#include "base/loop.h"
#include "net/socket.h"

namespace stag::rpc::tcp {

// Thread: its loop. Readiness is told as net::Descriptor tells it: once for each time it is asked
// for, in a later turn, perhaps early.
class Wire {
 public:
  using Function = UniqueFunction<void()>;
  virtual ~Wire() = default;

  virtual net::Transfer try_read(std::span<const iovec> pieces) = 0;
  virtual net::Transfer try_write(std::span<const iovec> pieces) = 0;
  virtual void when_readable(Function&& function) = 0;
  // Others of the loop wait for their turn, too.
  virtual bool crowded() const { return false; }
  virtual void when_writable(Function&& function) = 0;
  // Bytes of those written that the peer's side has not acknowledged. May cost a system call.
  virtual std::size_t unacknowledged() const = 0;
  // What was written still arrives; nothing is written any more.
  virtual void end_output() {}
  virtual void close() = 0;
  virtual Address peer() const = 0;
  virtual Address local() const = 0;
  virtual Loop& loop() const = 0;
};

class SocketWire final : public Wire {
 public:
  explicit SocketWire(net::TcpSocket socket) : socket_(std::move(socket)) {}

  net::Transfer try_read(std::span<const iovec> pieces) override {
    return socket_.try_read(pieces);
  }
  net::Transfer try_write(std::span<const iovec> pieces) override {
    return socket_.try_write(pieces);
  }
  bool crowded() const override { return socket_.crowded(); }
  void when_readable(Function&& function) override { socket_.when_readable(std::move(function)); }
  void when_writable(Function&& function) override { socket_.when_writable(std::move(function)); }
  std::size_t unacknowledged() const override { return socket_.unacknowledged(); }
  void end_output() override { socket_.shutdown_write(); }
  void close() override { socket_.close(); }
  Address peer() const override { return socket_.peer(); }
  Address local() const override { return socket_.local(); }
  Loop& loop() const override;

 private:
  net::TcpSocket socket_;
};

}  // namespace stag::rpc::tcp
