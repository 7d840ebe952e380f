#include "fabric/iwarp/iwarp_fabric.h"

#include <utility>

#include "fabric/iwarp/iwarp_connection.h"
#include "fabric/iwarp/iwarp_listener.h"
#include "fabric/iwarp/mpa_setup.h"

namespace stag::fabric {

IwarpFabric::IwarpFabric(net::EpollLoop& loop, IwarpOptions options,
                         std::vector<net::EpollLoop*> accepting)
    : loop_(loop),
      accepting_(std::move(accepting)),
      options_(std::make_shared<const IwarpOptions>(std::move(options))) {
  if (accepting_.empty()) accepting_ = {&loop};
}

std::vector<Loop*> IwarpFabric::accepting_loops() {
  return {accepting_.begin(), accepting_.end()};
}

std::size_t IwarpFabric::max_private_data() const {
  return kMostPrivateData;
}

Task<Result<std::unique_ptr<Connection>, Reason>> IwarpFabric::connect(Address address,
                                                                       ConnectOptions options,
                                                                       CancelToken cancel) {
  auto setup = co_await initiate(options_, loop_, std::move(address), std::move(options), cancel);
  if (!setup) co_return Failure{setup.error()};
  co_return std::unique_ptr<Connection>(std::make_unique<IwarpConnection>(*std::move(setup)));
}

Result<std::unique_ptr<Listener>, Reason> IwarpFabric::listen(Address address,
                                                              ListenOptions options,
                                                              Acceptor& acceptor) {
  auto tcp = adopted_ ? net::TcpListener::adopt(loop_, std::exchange(adopted_, {}))
                      : net::TcpListener::listen(loop_, address);
  if (!tcp) return Failure{tcp.error()};
  return IwarpListener::open(options_, loop_, accepting_, *std::move(tcp), options, acceptor);
}

}  // namespace stag::fabric
