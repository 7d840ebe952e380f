#include "cli/support/further_loops.h"

namespace stag::cli {

Result<std::unique_ptr<FurtherLoops>, Reason> FurtherLoops::start(Loop& near, std::size_t count,
                                                                  const Make& make) {
  auto loops = endpoint::Loops::start(count);
  if (!loops) return Failure{loops.error()};
  std::unique_ptr<FurtherLoops> further(new FurtherLoops(*std::move(loops)));
  further->far_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    net::EpollLoop& loop = further->loops_->at(i);
    endpoint::run_on(loop, [&] { further->far_[i] = make(loop); });
    further->proxies_.push_back(std::make_unique<rpc::ProxyConnector>(near, *further->far_[i]));
    further->connectors_.push_back(further->proxies_.back().get());
  }
  return further;
}

FurtherLoops::~FurtherLoops() {
  for (std::size_t i = 0; i < far_.size(); ++i)
    endpoint::finish_on(loops_->at(i), [&] { far_[i].reset(); });
}

}  // namespace stag::cli
