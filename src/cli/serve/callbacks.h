// How `stag serve` calls version 4 clients back: options, and the connections to clients of version
// 4.0.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/network.h"
#include "base/result.h"
#include "cli/support/arguments.h"
#include "net/loop.h"
#include "nfs/v4/nfs4_server.h"
#include "rpc/channel.h"

namespace stag::cli {

class CallbackOptions {
 public:
  void declare(Arguments& arguments);
  // Reads the networks; the error is one sentence.
  Result<Ok, std::string> check();
  bool wanted() const { return wanted_; }
  void apply(nfs::nfs4::Nfs4Options& options) const {
    options.callback_networks = networks_;
    options.rdma_callbacks = over_rdma_;
  }

 private:
  bool wanted_ = true;
  bool over_rdma_ = true;
  std::vector<std::string> network_texts_;
  std::vector<IpNetwork> networks_;
};

// Makes the connections to clients of version 4.0, on `loop`, which outlives it.
std::unique_ptr<rpc::Connector> callback_connector(net::EpollLoop& loop);

}  // namespace stag::cli
