// Connection: what a program may know of the connection that a Call came on: which one it is, and
// when it is gone. The transport makes one for each of its connections and ends it; Calls that
// outlive their connection, and programs that keep state for it, hold it by its Origin.
//
// Thread: the connection's loop, but for id().
#pragma once

#include <cstdint>

#include "base/unique_function.h"

namespace stag::rpc {

class Connection {
 public:
  class Watch;

  Connection();
  ~Connection() { end(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Names this connection as long as the process runs: no later one has the same. Never 0.
  std::uint64_t id() const { return id_; }
  bool down() const { return down_; }
  // For the transport: the connection is gone. Calls the watches, the first time.
  void end() noexcept;

 private:
  const std::uint64_t id_;
  bool down_ = false;
  Watch* first_ = nullptr;
};

// Calls a function when a connection is gone, once.
class Connection::Watch {
 public:
  Watch() = default;
  ~Watch() { stop(); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // False, and `function` is not called, when the connection is gone already. The function runs
  // inside the transport, which it must not call; it may destroy this object. What it throws is
  // traced. Nothing is watched yet.
  [[nodiscard]] bool start(Connection& connection, UniqueFunction<void()> function);
  // The function is not called any more. The connection may be gone.
  void stop();

 private:
  friend class Connection;

  UniqueFunction<void()> function_;
  Connection* connection_ = nullptr;
  Watch* next_ = nullptr;
  Watch** link_ = nullptr;  // what points here
};

}  // namespace stag::rpc
