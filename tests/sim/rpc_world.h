// Clients and a server of the blob program on one simulated network, everything about them chosen
// by a seed, and workers that make calls and check every outcome.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/task_group.h"
#include "fabric/sim/sim_fabric.h"
#include "rpc/client.h"
#include "rpc/rdma/channel.h"
#include "rpc/rdma/server.h"
#include "rpc/server.h"
#include "testing/blob_program.h"

namespace stag::testing {

// Must not run twice for one Call: the server's replay cache sees to it.
using Take = FetchProcedure<6>;

class RpcWorld {
 public:
  explicit RpcWorld(std::uint64_t seed);
  ~RpcWorld();
  // Until every worker has made its calls; reports what went wrong to GoogleTest.
  void run();

 private:
  struct Host {
    std::optional<rpc::Server> reverse_program;
    std::optional<rpc::rdma::Channel> channel;
  };
  // How a call may end before its time.
  struct Plan {
    Duration timeout{0};  // 0: never
    Duration cancel_after{0};
  };

  static fabric::SimOptions sim_options(fabric::Random& random);
  rpc::rdma::TransportOptions transport_options();
  rpc::Program program();
  void start_server();
  void add_host();

  Task<void> work(Host* host, int calls);
  template <class P>
  Task<void> call(rpc::Client client, typename P::Args args);
  Task<void> call_something(rpc::Client client);
  Plan plan();
  void check(const Plan& plan, const rpc::CallError& error) const;
  bool ran_before(std::uint32_t taken, const rpc::CallError& error) const;
  std::uint32_t length();

  Task<Blob> take(rpc::CallContext& context, Wanted wanted);
  Task<Blob> fetch_slowly(rpc::CallContext& context, Wanted wanted);
  Task<Blob> echo_and_call_back(rpc::CallContext& context, Blob blob);

  fabric::Random random_;
  fabric::SimLoop loop_;
  fabric::SimFabric network_;
  fabric::Faults faults_;
  rpc::Server server_program_;
  std::optional<rpc::rdma::Server> server_;
  Address address_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::map<std::uint32_t, int> taken_;  // executions by seed of the call
  std::uint32_t next_seed_ = 1;
  TaskGroup workers_;
};

}  // namespace stag::testing
