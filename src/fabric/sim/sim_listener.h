// How simulated connections come to be: the listening side and an attempt of the connecting side.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "base/completion.h"
#include "fabric/fabric.h"
#include "fabric/sim/sim_connection.h"
#include "fabric/sim/sim_fabric.h"

namespace stag::fabric {

class SimListener final : public Listener {
 public:
  SimListener(SimFabric& fabric, Address address, ListenOptions options, Acceptor& acceptor);
  ~SimListener() override;
  Address local_address() const override { return address_; }
  void limit_connections(std::uint32_t all, std::uint32_t) override {
    options_.max_connections = all;
  }

  // A connection request has arrived. The active side of the new connection, or why there is none.
  Result<std::unique_ptr<SimConnection>, Reason> request(const Address& from,
                                                         const ConnectOptions& active);

 private:
  void hand_over(std::unique_ptr<SimConnection> connection);

  SimFabric& fabric_;
  Address address_;
  ListenOptions options_;
  Acceptor& acceptor_;
  std::shared_ptr<std::uint32_t> connections_ = std::make_shared<std::uint32_t>(0);
  struct Arrival {
    std::unique_ptr<SimConnection> connection;
    Timer timer;
  };
  std::uint64_t next_arrival_ = 0;
  std::map<std::uint64_t, Arrival> arrivals_;  // not handed to the acceptor yet
};

// Lives in the frame of SimFabric::connect.
class ConnectAttempt {
 public:
  using Outcome = Result<std::unique_ptr<Connection>, Reason>;

  ConnectAttempt(SimFabric& fabric, Address address, ConnectOptions options)
      : fabric_(fabric), address_(std::move(address)), options_(std::move(options)) {}
  void begin();
  // Gives up, in a later turn.
  void end(Reason reason);
  Completion<Outcome>& outcome() { return outcome_; }

 private:
  Duration step_time();
  void reach_listener();
  void answer();

  SimFabric& fabric_;
  Address address_;
  ConnectOptions options_;
  std::unique_ptr<SimConnection> connection_;
  Reason refusal_ = Reason::None;
  Timer step_, deadline_;
  Completion<Outcome> outcome_;
};

}  // namespace stag::fabric
