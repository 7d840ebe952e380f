#include "fabric/sim/sim_listener.h"

#include <algorithm>

namespace stag::fabric {

SimListener::SimListener(SimFabric& fabric, Address address, ListenOptions options,
                         Acceptor& acceptor)
    : fabric_(fabric), address_(std::move(address)), options_(options), acceptor_(acceptor) {
  fabric_.listeners_.emplace(std::make_pair(address_.host, address_.port), this);
}

SimListener::~SimListener() {
  fabric_.listeners_.erase({address_.host, address_.port});
}

Result<std::unique_ptr<SimConnection>, Reason> SimListener::request(const Address& from,
                                                                    const ConnectOptions& active) {
  if (*connections_ >= options_.max_connections) return Failure{Reason::ConnectionRefused};
  SimConnection::Setup mine;
  mine.passive = true;
  mine.parameters.max_registration = fabric_.options_.max_registration;
  mine.parameters.remote_invalidation = fabric_.options_.remote_invalidation;
  mine.parameters.discards = fabric_.options_.discards;
  SimConnection::Setup theirs = mine;
  theirs.passive = false;
  theirs.parameters.remote_invalidation = fabric_.options_.client_remote_invalidation;
  mine.peer_private_data = active.private_data_for(theirs.parameters);
  auto answer = acceptor_.on_connect_request({from, address_, mine.peer_private_data});
  if (!answer) return Failure{Reason::ConnectionRejected};
  if (answer->private_data_size() > fabric_.options_.max_private_data)
    return Failure{Reason::PrivateDataTooLong};
  theirs.peer_private_data = answer->private_data_for(mine.parameters);
  mine.parameters.outbound_reads = std::min(answer->outbound_reads, active.inbound_reads);
  mine.parameters.inbound_reads = std::min(answer->inbound_reads, active.outbound_reads);
  theirs.parameters.outbound_reads = mine.parameters.inbound_reads;
  theirs.parameters.inbound_reads = mine.parameters.outbound_reads;
  mine.peer = theirs.local = from;
  mine.local = theirs.peer = address_;
  mine.receive = answer->receive;
  mine.receives_max = answer->receives_max;
  theirs.receive = active.receive;
  theirs.receives_max = active.receives_max;
  mine.listener_count = connections_;
  ++*connections_;
  auto passive_side = std::make_unique<SimConnection>(fabric_, std::move(mine));
  auto active_side = std::make_unique<SimConnection>(fabric_, std::move(theirs));
  SimConnection::join(*active_side, *passive_side);
  hand_over(std::move(passive_side));
  return active_side;
}

void SimListener::hand_over(std::unique_ptr<SimConnection> connection) {
  const std::uint64_t id = next_arrival_++;
  Timer timer = connection->loop().after(Duration::zero(), [this, id] {
    auto arrival = arrivals_.extract(id);
    acceptor_.on_connection(std::move(arrival.mapped().connection));
  });
  arrivals_.emplace(id, Arrival{std::move(connection), std::move(timer)});
}

Duration ConnectAttempt::step_time() {
  return fabric_.options_.latency + fabric_.plan_.delay();
}

void ConnectAttempt::begin() {
  deadline_ = fabric_.loop_.after(options_.timeout, [this] { end(Reason::TimedOut); });
  if (options_.private_data_size() > fabric_.options_.max_private_data)
    return end(Reason::PrivateDataTooLong);
  if (fabric_.plan_.refuses_connect()) {
    refusal_ = Reason::ConnectionRefused;
    step_ = fabric_.loop_.after(step_time(), [this] { answer(); });
  } else if (!fabric_.plan_.loses_connect()) {
    step_ = fabric_.loop_.after(step_time(), [this] { reach_listener(); });
  }
}

void ConnectAttempt::reach_listener() {
  // A request that is lost is never answered.
  if (fabric_.plan_.kills_step()) return;
  const auto listener = fabric_.listeners_.find({address_.host, address_.port});
  if (listener == fabric_.listeners_.end()) {
    refusal_ = Reason::ConnectionRefused;
  } else {
    const Address from{fabric_.options_.client_host, fabric_.fresh_port()};
    auto connection = listener->second->request(from, options_);
    if (connection)
      connection_ = std::move(*connection);
    else
      refusal_ = connection.error();
  }
  step_ = fabric_.loop_.after(step_time(), [this] { answer(); });
}

void ConnectAttempt::answer() {
  if (fabric_.plan_.kills_step()) {
    if (connection_) connection_->lose();
    return;
  }
  if (refusal_ != Reason::None) return end(refusal_);
  outcome_.complete(std::unique_ptr<Connection>(std::move(connection_)));
}

void ConnectAttempt::end(Reason reason) {
  deadline_.cancel();
  step_ = fabric_.loop_.after(Duration::zero(), [this, reason] {
    connection_.reset();
    outcome_.complete(Failure{reason});
  });
}

}  // namespace stag::fabric
