#include "fabric/sim/sim_fabric.h"

#include <utility>

#include "fabric/sim/sim_connection.h"
#include "fabric/sim/sim_listener.h"

namespace stag::fabric {

SimFabric::SimFabric(SimLoop& loop, SimOptions options)
    : loop_(loop),
      options_(std::move(options)),
      random_(options_.seed),
      plan_(options_.faults, random_) {
  set_faults(options_.faults);
}

SimFabric::~SimFabric() {
  STAG_CHECK(connections_.empty());
  STAG_CHECK(listeners_.empty());
}

std::uint16_t SimFabric::fresh_port() {
  constexpr std::uint16_t kFirst = 49152;
  if (next_port_ < kFirst) next_port_ = kFirst;  // it has wrapped
  return next_port_++;
}

void SimFabric::set_faults(const Faults& faults) {
  plan_ = FaultPlan(faults, random_);
  kill_timer_.cancel();
  if (faults.kill_after) {
    kill_timer_ = loop_.after(*faults.kill_after, [this] { lose_connections(); });
  }
}

void SimFabric::lose_connections() {
  for (const auto& [id, connection] : connections_) connection->lose();
}

// The parameters by value live in the coroutine's frame as long as the attempt does.
Task<Result<std::unique_ptr<Connection>, Reason>> SimFabric::connect(Address address,
                                                                     ConnectOptions options,
                                                                     CancelToken cancel) {
  ConnectAttempt attempt(*this, std::move(address), std::move(options));
  attempt.begin();
  CancelCallback on_cancel(cancel, [&attempt] { attempt.end(Reason::Cancelled); });
  Completion<ConnectAttempt::Outcome>& outcome = attempt.outcome();
  co_return co_await outcome;
}

Result<std::unique_ptr<Listener>, Reason> SimFabric::listen(Address address, ListenOptions options,
                                                            Acceptor& acceptor) {
  if (address.port == 0) {
    do {
      address.port = fresh_port();
    } while (listeners_.count({address.host, address.port}) != 0);
  }
  if (listeners_.count({address.host, address.port}) != 0) return Failure{Reason::AddressInUse};
  return std::unique_ptr<Listener>(
      std::make_unique<SimListener>(*this, std::move(address), options, acceptor));
}

}  // namespace stag::fabric
