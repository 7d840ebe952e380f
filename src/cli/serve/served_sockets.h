// The sockets that `stag serve` listens at: new ones, or those that it got from the service manager
// or from the server before it, so that no client is turned away in between.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/reason.h"
#include "net/passed_sockets.h"

namespace stag::cli {

class ServedSockets {
 public:
  // Sockets of others, of which those that fit what is asked for are used.
  void inherit(std::vector<net::UniqueFd> sockets);
  // Sees to it that open() will have one at `at`: what is not inherited is made now. Port 0 is free
  // at any time. Blocking: a host name is resolved.
  Result<Ok, Reason> reserve(net::SocketUse use, const Address& at);
  // One at `at`. Blocking: a host name is resolved.
  Result<net::UniqueFd, Reason> open(net::SocketUse use, const Address& at);
  // Closes the inherited ones that nobody asked for, and yields their addresses.
  std::vector<std::string> drop_unused();
  // Of all that were opened; none where the system refuses one of them. They go on listening as
  // long as one of their copies is there. Thread: any.
  std::vector<net::UniqueFd> copies() const;
  // Lets go of them: what listens no more is closed.
  void close();

 private:
  using Sockets = std::vector<net::UniqueFd>;
  // The inherited one at `at`; the end: there is none.
  Result<Sockets::iterator, Reason> find(net::SocketUse use, const Address& at);

  mutable std::mutex mutex_;
  std::vector<net::UniqueFd> inherited_;
  std::vector<net::UniqueFd> opened_;
};

}  // namespace stag::cli
