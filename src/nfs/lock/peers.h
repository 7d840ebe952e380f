// Peers: connections to the clients' hosts: to their lock managers for NLM_GRANTED, to their status
// monitors for SM_NOTIFY.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <string>

#include "rpc/channel.h"

namespace stag::nfs::lock {

// From where to where a client's host is called, as numeric addresses.
struct Route {
  std::string host;
  // The address of this machine that the client called, and knows its server by: Linux refuses
  // NLM_GRANTED from another one. Empty: the system chooses.
  std::string from;
  friend auto operator<=>(const Route&, const Route&) = default;
};

class Peers {
 public:
  virtual ~Peers() = default;
  // A connection to `program` at the port where it listens on the host; from any address where this
  // machine has not that of the route any more. The caller closes it, on its loop. Fails by itself
  // after a while.
  virtual Task<Result<std::unique_ptr<rpc::Channel>, rpc::CallError>> reach(Route route,
                                                                            std::uint32_t program,
                                                                            std::uint32_t version,
                                                                            CancelToken cancel) = 0;
};

}  // namespace stag::nfs::lock
