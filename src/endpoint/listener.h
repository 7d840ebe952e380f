// A Service at an address, served by threads of its own or shared ones.
//
//   stag::rpc::Server server;
//   server.add<MYPROC_GREET>(...);
//   auto listener = stag::endpoint::listen(server, {"127.0.0.1", 20049});
//
// Several transports: listen() once for each, with the same Loops.
#pragma once

#include <memory>

#include "base/address.h"
#include "endpoint/options.h"
#include "rpc/service.h"

namespace stag::endpoint {

// Destroying it, on a thread that is no loop's, ends its connections; the last one on its Loops
// also waits for the Calls in progress.
class Listener {
 public:
  Listener(Listener&&) noexcept;
  Listener& operator=(Listener&&) noexcept;
  ~Listener();

  // With the real port when 0 was asked for.
  const Address& address() const;
  const std::shared_ptr<Loops>& loops() const;

 private:
  friend Result<Listener, Reason> listen(rpc::Service& service, const Address& at,
                                         ListenOptions options);
  struct State;
  explicit Listener(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// `service` outlives the Listener and, with shared Loops, its Calls (rpc::Server::active_calls()).
Result<Listener, Reason> listen(rpc::Service& service, const Address& at,
                                ListenOptions options = {});

}  // namespace stag::endpoint
