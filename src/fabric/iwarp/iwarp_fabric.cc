#include "fabric/iwarp/iwarp_fabric.h"

#include <utility>

#include "fabric/iwarp/iwarp_connection.h"
#include "fabric/iwarp/iwarp_listener.h"
#include "fabric/iwarp/mpa_setup.h"
#include "net/loop.h"

namespace stag::fabric {

IwarpFabric::IwarpFabric(IwarpOptions options)
    : options_(std::make_shared<const IwarpOptions>(std::move(options))) {}

std::size_t IwarpFabric::max_private_data() const {
  return kMostPrivateData;
}

Task<Result<std::unique_ptr<Connection>, Reason>> IwarpFabric::connect(Loop& loop, Address address,
                                                                       ConnectOptions options,
                                                                       CancelToken cancel) {
  auto& here = dynamic_cast<net::EpollLoop&>(loop);
  auto setup = co_await initiate(options_, here, std::move(address), std::move(options), cancel);
  if (!setup) co_return Failure{setup.error()};
  co_return std::unique_ptr<Connection>(std::make_unique<IwarpConnection>(*std::move(setup)));
}

Result<std::unique_ptr<Listener>, Reason> IwarpFabric::listen(Loop& loop, Address address,
                                                              ListenOptions options,
                                                              Acceptor& acceptor) {
  return IwarpListener::open(options_, dynamic_cast<net::EpollLoop&>(loop), address,
                             std::move(options), acceptor);
}

}  // namespace stag::fabric
