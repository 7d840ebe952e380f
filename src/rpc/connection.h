// Connection: what a program may know about the connection that a Call came on: its identity, and
// when it goes down. The transport makes one Connection for each of its connections and calls
// end(). Calls that outlive their connection, and programs that keep state for it, share the object
// through Origin::connection.
//
// Thread: the connection's loop; id() on any thread.
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

  // Unique in this process: no later connection has the same id. Never 0.
  std::uint64_t id() const { return id_; }
  // Whether end() was called.
  bool down() const { return down_; }
  // The transport calls this when the connection is gone. The first call runs the watches.
  void end() noexcept;

 private:
  const std::uint64_t id_;
  bool down_ = false;
  Watch* first_ = nullptr;
};

// Calls a function once, when a connection goes down.
class Connection::Watch {
 public:
  Watch() = default;
  ~Watch() { stop(); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Registers `function`; no other function is registered. False, and `function` is never called,
  // when the connection is down already. The function runs inside the transport, which it must not
  // call; it may destroy this object. An exception of the function is traced.
  [[nodiscard]] bool start(Connection& connection, UniqueFunction<void()> function);
  // Unregisters the function. Idempotent; allowed after the connection is gone.
  void stop();

 private:
  friend class Connection;

  UniqueFunction<void()> function_;
  Connection* connection_ = nullptr;
  Watch* next_ = nullptr;
  Watch** link_ = nullptr;  // what points here
};

}  // namespace stag::rpc
