// Accepting connections of streams: TCP, and Unix sockets.
#pragma once

#include <cstddef>
#include <memory>

#include "base/address.h"
#include "base/loop.h"
#include "base/reason.h"
#include "base/result.h"
#include "net/socket.h"

namespace stag::net {

struct ListenOptions {
  int backlog = 4096;  // the system may have a lower limit
  // How long accepting pauses when the system has no descriptor or memory for one more connection,
  // or accepting fails otherwise.
  Duration pause = std::chrono::milliseconds(100);
};

// A socket that listens at `at` and that nobody serves yet, as TcpListener::listen() makes it. May
// block: a host name is resolved here. Thread: any.
Result<UniqueFd, Reason> listening_socket(const Address& at, int backlog = ListenOptions{}.backlog);

// Used and destroyed on its loop's thread; destroying it stops listening.
class TcpListener {
 public:
  using OnAccept = UniqueFunction<void(AcceptedSocket)>;

  // `at` with port 0 takes a free port (see local()); an empty host means every address, IPv6 and
  // IPv4. A host name is resolved here and may block: listening starts at start-up. Its first
  // address is used.
  static Result<TcpListener, Reason> listen(EpollLoop& loop, const Address& at,
                                            ListenOptions options = {});
  // A socket that listens already and does not block.
  static Result<TcpListener, Reason> adopt(EpollLoop& loop, UniqueFd listening,
                                           ListenOptions options = {});
  TcpListener(TcpListener&&) noexcept;
  TcpListener& operator=(TcpListener&&) noexcept;
  ~TcpListener();

  // From now on `on_accept` gets every connection, on the loop's thread; it may destroy the
  // listener. When the system is short of descriptors (counted as TooManyOpenFiles) or memory the
  // connections wait in the backlog.
  void start(OnAccept on_accept);
  // With the port the system chose.
  Address local() const;

 private:
  struct State;
  explicit TcpListener(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace stag::net
