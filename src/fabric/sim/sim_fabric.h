// fabric/sim: RDMA inside one process, in virtual time, with faults on demand: the fabric that
// everything above is tested on.
//
// It behaves like hardware that is as unkind as the contract of fabric.h allows. Bytes are really
// moved, as late as possible: a Send or Write takes its bytes when they arrive at the peer, not
// when they are posted, so memory that is reused too early arrives wrong (and freed memory is found
// by the address sanitizer). Handles and offsets are random. Received messages are borrowed or
// owned by chance; borrowed ones are overwritten after the call. A Read that failed leaves rubbish
// in its sink. A connection may die at any step (faults.h).
//
// Everything follows from SimOptions::seed and the input: print the seed of a run that failed and
// run it again.
//
// One SimFabric is one network on one SimLoop. Listeners are told apart by Address; who connects is
// a port of the host "client".
// The fabric outlives its connections, listeners and connection attempts.
#pragma once

#include <map>
#include <memory>

#include "fabric/fabric.h"
#include "fabric/sim/faults.h"
#include "fabric/sim/random.h"
#include "fabric/sim/sim_loop.h"

namespace stag::fabric {

struct SimOptions {
  std::uint64_t seed = 1;
  Duration latency = std::chrono::microseconds(10);        // one way
  Duration time_per_mib = std::chrono::microseconds(100);  // of payload on a link
  // How long a side may take to notice that its connection is lost.
  Duration loss_detection = std::chrono::milliseconds(100);
  std::size_t max_private_data = 252;
  std::uint32_t max_registration = 1u << 30;  // bytes under one handle
  std::size_t max_registrations = 65536;      // handles of one connection
  std::size_t max_private_copy = 1u << 20;  // bytes; a longer abandoned source ends the connection
  bool remote_invalidation = true;          // of the ends that listen
  bool client_remote_invalidation = true;   // and of those that connect
  bool discards = true;                     // Parameters::discards
  std::string client_host = "client";       // where all connections come from
  Faults faults;
};

class SimConnection;
class SimListener;

class SimFabric final : public Fabric {
 public:
  explicit SimFabric(SimLoop& loop, SimOptions options = {});
  ~SimFabric() override;

  SimLoop& loop() override { return loop_; }
  std::vector<Loop*> accepting_loops() override { return {&loop_}; }
  std::size_t max_private_data() const override { return options_.max_private_data; }
  Task<Result<std::unique_ptr<Connection>, Reason>> connect(Address address, ConnectOptions options,
                                                            CancelToken cancel) override;
  // Any host name is an address of this network. Port 0: a free one.
  Result<std::unique_ptr<Listener>, Reason> listen(Address address, ListenOptions options,
                                                   Acceptor& acceptor) override;

  const SimOptions& options() const { return options_; }
  Random& random() { return random_; }

  // Replaces the fault plan; its counts start again.
  void set_faults(const Faults& faults);
  // Steps since the plan began (faults.h).
  std::uint64_t steps() const { return plan_.steps(); }
  // Every connection is lost now; each side finds out in its own time.
  void lose_connections();
  std::size_t open_connections() const { return connections_.size(); }

 private:
  friend class SimConnection;
  friend class SimListener;
  friend class ConnectAttempt;

  std::uint16_t fresh_port();

  SimLoop& loop_;
  SimOptions options_;
  Random random_;
  FaultPlan plan_;
  Timer kill_timer_;
  std::uint64_t next_id_ = 1;
  std::uint16_t next_port_ = 49152;
  std::map<std::uint64_t, SimConnection*> connections_;  // by age: no order by chance addresses
  std::map<std::pair<std::string, std::uint16_t>, SimListener*> listeners_;
};

}  // namespace stag::fabric
