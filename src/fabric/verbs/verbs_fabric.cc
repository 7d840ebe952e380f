#include "fabric/verbs/verbs_fabric.h"

#include <utility>

#include "fabric/verbs/verbs_connect.h"
#include "fabric/verbs/verbs_listener.h"
#include "fabric/verbs/verbs_loop.h"

namespace stag::fabric {

namespace {
std::vector<net::EpollLoop*> or_alone(std::vector<net::EpollLoop*> accepting,
                                      net::EpollLoop& loop) {
  if (accepting.empty()) accepting = {&loop};
  return accepting;
}
}  // namespace

VerbsFabric::VerbsFabric(net::EpollLoop& loop, VerbsOptions options,
                         std::vector<net::EpollLoop*> accepting)
    : loop_(loop),
      accepting_(or_alone(std::move(accepting), loop)),
      shared_(std::make_shared<VerbsShared>()) {
  shared_->functions = options.functions;
  shared_->options = std::move(options);
  if (shared_->functions != nullptr) return;
  auto loaded = load_verbs();
  if (loaded)
    shared_->functions = *std::move(loaded);
  else
    unavailable_ = loaded.error();
}

std::vector<Loop*> VerbsFabric::accepting_loops() {
  return {accepting_.begin(), accepting_.end()};
}

Task<Result<std::unique_ptr<Connection>, Reason>> VerbsFabric::connect(Address address,
                                                                       ConnectOptions options,
                                                                       CancelToken cancel) {
  if (unavailable_ != Reason::None) co_return Failure{unavailable_};
  if (options.private_data_size() > max_private_data())
    co_return Failure{Reason::PrivateDataTooLong};
  auto connected =
      co_await verbs_connect(shared_, loop_, std::move(address), std::move(options), cancel);
  if (!connected) co_return Failure{connected.error()};
  co_return std::unique_ptr<Connection>(*std::move(connected));
}

Result<std::unique_ptr<Listener>, Reason> VerbsFabric::listen(Address address,
                                                              ListenOptions options,
                                                              Acceptor& acceptor) {
  if (unavailable_ != Reason::None) return Failure{unavailable_};
  return VerbsListener::open(shared_, loop_, accepting_, address, options, acceptor,
                             std::exchange(adopted_, nullptr));
}

}  // namespace stag::fabric
