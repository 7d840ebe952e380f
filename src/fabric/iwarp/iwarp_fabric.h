// fabric/iwarp: RDMA for every machine that has TCP. Software iWARP (RFC 5040, 5041, 5044, 6581) in
// user space, wire-compatible with Linux siw and iWARP adapters, on net::EpollLoop.
//
// Plaintext: any host that reaches the port can speak to the service, and any that reads the
// network can read the data. Handles are unpredictable and good for one connection, one direction
// and one range.
//
// The fabric may go before its connections.
#pragma once

#include <memory>

#include "base/unique_fd.h"
#include "fabric/fabric.h"
#include "fabric/iwarp/iwarp_options.h"
#include "net/loop.h"

namespace stag::fabric {

class IwarpFabric final : public Fabric {
 public:
  // Accepted connections are spread over `accepting`; empty: `loop` alone.
  explicit IwarpFabric(net::EpollLoop& loop, IwarpOptions options = {},
                       std::vector<net::EpollLoop*> accepting = {});

  Loop& loop() override { return loop_; }
  std::vector<Loop*> accepting_loops() override;
  std::size_t max_private_data() const override;
  Task<Result<std::unique_ptr<Connection>, Reason>> connect(Address address, ConnectOptions options,
                                                            CancelToken cancel) override;
  // The next listen() serves this socket, which listens already, whatever its address says.
  void adopt(UniqueFd listening) { adopted_ = std::move(listening); }
  // A host name is resolved on the spot; an empty host is every address of this machine.
  Result<std::unique_ptr<Listener>, Reason> listen(Address address, ListenOptions options,
                                                   Acceptor& acceptor) override;

 private:
  net::EpollLoop& loop_;
  std::vector<net::EpollLoop*> accepting_;
  std::shared_ptr<const IwarpOptions> options_;
  UniqueFd adopted_;
};

}  // namespace stag::fabric
