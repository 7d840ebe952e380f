// fabric/verbs: RDMA devices (InfiniBand, RoCE, iWARP) through rdma-core, on net::EpollLoop.
//
// rdma-core is found at run time: where it is not installed, connect() and listen() fail with
// VerbsLibraryMissing. Keys are as unpredictable as the device makes them, and name one range with
// one right; the addresses of exposed memory are those of this process.
//
// The fabric may go before its connections.
#pragma once

#include <memory>

#include "fabric/fabric.h"
#include "fabric/verbs/verbs_options.h"
#include "net/loop.h"

namespace stag::fabric {

class VerbsPort;
struct VerbsShared;

class VerbsFabric final : public Fabric {
 public:
  // Accepted connections are spread over `accepting`; empty: `loop` alone.
  explicit VerbsFabric(net::EpollLoop& loop, VerbsOptions options = {},
                       std::vector<net::EpollLoop*> accepting = {});

  Loop& loop() override { return loop_; }
  std::vector<Loop*> accepting_loops() override;

  // What InfiniBand's CM leaves of a request. What arrives may be followed by zeros.
  std::size_t max_private_data() const override { return 56; }
  Task<Result<std::unique_ptr<Connection>, Reason>> connect(Address address, ConnectOptions options,
                                                            CancelToken cancel) override;
  // The next listen() takes on this port, which listens at its address. It is the first use of the
  // fabric.
  void adopt(std::shared_ptr<VerbsPort> port) { adopted_ = std::move(port); }
  // A host name is resolved on the spot; an empty host is every address of every device.
  Result<std::unique_ptr<Listener>, Reason> listen(Address address, ListenOptions options,
                                                   Acceptor& acceptor) override;

 private:
  net::EpollLoop& loop_;
  const std::vector<net::EpollLoop*> accepting_;
  std::shared_ptr<VerbsShared> shared_;
  std::shared_ptr<VerbsPort> adopted_;
  Reason unavailable_ = Reason::None;
};

}  // namespace stag::fabric
