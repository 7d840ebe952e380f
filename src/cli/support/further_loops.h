// FurtherLoops: loops with threads of their own, beside the one of a command, which work for
// connections that the command uses on its own.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "endpoint/loops.h"
#include "rpc/proxy_channel.h"

namespace stag::cli {

class FurtherLoops {
 public:
  using Make = std::function<std::unique_ptr<rpc::Connector>(net::EpollLoop& loop)>;

  // Starts `count` threads, at least 1, each with the Connector that `make` gives it there. Thread:
  // that of `near`, which outlives this. Fails with TooManyOpenFiles or TooManyThreads.
  static Result<std::unique_ptr<FurtherLoops>, Reason> start(Loop& near, std::size_t count,
                                                             const Make& make);
  // The Channels of its Connectors are closed and destroyed by then.
  ~FurtherLoops();
  FurtherLoops(const FurtherLoops&) = delete;
  FurtherLoops& operator=(const FurtherLoops&) = delete;

  // One for each of the loops, of `near`.
  std::span<rpc::Connector* const> connectors() const { return connectors_; }

 private:
  explicit FurtherLoops(std::shared_ptr<endpoint::Loops> loops) : loops_(std::move(loops)) {}

  std::shared_ptr<endpoint::Loops> loops_;
  std::vector<std::unique_ptr<rpc::Connector>> far_;  // each of its loop
  std::vector<std::unique_ptr<rpc::ProxyConnector>> proxies_;
  std::vector<rpc::Connector*> connectors_;
};

}  // namespace stag::cli
