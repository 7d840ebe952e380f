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
  // Sockets of others, of which those are used that are claimed.
  void inherit(std::vector<UniqueFd> sockets);
  // Keeps the inherited one at `at`, if there is one, for open(). Blocking: a host name is
  // resolved.
  Result<Ok, Reason> claim(net::SocketUse use, const Address& at);
  // Sees to it that open() will have one at `at`, when everything is claimed: what is not inherited
  // is made now. Port 0 is free at any time, and where an inherited one that nobody has claimed is
  // in the way, close_unclaimed() makes it free. Blocking likewise.
  Result<Ok, Reason> reserve(net::SocketUse use, const Address& at);
  // Closes the inherited ones that nobody has claimed, and yields their addresses.
  std::vector<std::string> close_unclaimed();
  // One at `at`. Blocking: a host name is resolved, and this waits for the process that has copies
  // of those that were closed.
  Result<UniqueFd, Reason> open(net::SocketUse use, const Address& at);
  // Copies of all that were opened; none where the system refuses one of them. They go on listening
  // as long as one of their copies is there. Thread: any.
  std::vector<UniqueFd> copies() const;
  // Lets go of them: what listens no more is closed.
  void close();

 private:
  using Sockets = std::vector<UniqueFd>;
  // The claimed one at `at`, which is claimed now; the end: there is none.
  Result<Sockets::iterator, Reason> find(net::SocketUse use, const Address& at);
  Result<UniqueFd, Reason> make(net::SocketUse use, const Address& at) const;

  mutable std::mutex mutex_;
  Sockets inherited_;
  Sockets claimed_;
  Sockets opened_;
  bool has_closed_ = false;  // any of those inherited
};

}  // namespace stag::cli
