#include "endpoint/connector.h"

#include "endpoint/software.h"
#include "fabric/iwarp/iwarp_fabric.h"
#include "fabric/verbs/verbs_fabric.h"
#include "rpc/rdma/channel.h"
#include "rpc/tcp/channel.h"
#include "rpc/udp/channel.h"

namespace stag::endpoint {
namespace {

using ConnectedChannel = Result<std::unique_ptr<rpc::Channel>, rpc::CallError>;

rpc::rdma::ChannelOptions for_software(rpc::rdma::ChannelOptions options) {
  options.transport = endpoint::for_software(options.transport);
  return options;
}

// RPC-over-RDMA on a fabric of its own.
template <class FabricType>
class FabricConnector final : public rpc::Connector {
 public:
  template <class FabricOptions>
  FabricConnector(net::EpollLoop& loop, const FabricOptions& fabric,
                  const rpc::rdma::ChannelOptions& rdma)
      : fabric_(loop, fabric), connector_(fabric_, rdma) {}
  Loop& loop() override { return fabric_.loop(); }
  Task<ConnectedChannel> connect(Address server, CancelToken cancel) override {
    return connector_.connect(std::move(server), cancel);
  }

 private:
  FabricType fabric_;
  rpc::rdma::Connector connector_;
};

using IwarpConnector = FabricConnector<fabric::IwarpFabric>;
using VerbsConnector = FabricConnector<fabric::VerbsFabric>;

class AutoConnector final : public rpc::Connector {
 public:
  AutoConnector(net::EpollLoop& loop, const ConnectorOptions& options)
      : verbs_(loop, options.verbs, options.rdma),
        iwarp_(loop, options.iwarp, for_software(options.rdma)),
        on_choice_(options.on_choice) {}
  Loop& loop() override { return iwarp_.loop(); }
  Task<ConnectedChannel> connect(Address server, CancelToken cancel) override {
    ConnectedChannel by_device = co_await verbs_.connect(server, cancel);
    if (cancel.cancelled()) co_return by_device;
    if (by_device) {
      tell(FabricKind::Verbs, Reason::None);
      co_return by_device;
    }
    ConnectedChannel by_software = co_await iwarp_.connect(std::move(server), cancel);
    if (by_software) tell(FabricKind::Iwarp, by_device.error().reason);
    co_return by_software;
  }

 private:
  void tell(FabricKind chosen, Reason reason) const {
    if (on_choice_) on_choice_(chosen, reason);
  }

  VerbsConnector verbs_;
  IwarpConnector iwarp_;
  const std::function<void(FabricKind, Reason)> on_choice_;
};

std::unique_ptr<rpc::Connector> make_rdma_connector(net::EpollLoop& loop,
                                                    const ConnectorOptions& options) {
  switch (options.fabric) {
    case FabricKind::Verbs:
      return std::make_unique<VerbsConnector>(loop, options.verbs, options.rdma);
    case FabricKind::Auto:
      return std::make_unique<AutoConnector>(loop, options);
    case FabricKind::Iwarp:
      break;
  }
  return std::make_unique<IwarpConnector>(loop, options.iwarp, for_software(options.rdma));
}

}  // namespace

std::unique_ptr<rpc::Connector> make_connector(net::EpollLoop& loop,
                                               const ConnectorOptions& options) {
  if (options.transport == Transport::Tcp)
    return std::make_unique<rpc::tcp::TcpConnector>(loop, options.tcp);
  if (options.transport == Transport::Udp)
    return std::make_unique<rpc::udp::UdpConnector>(loop, options.udp);
  return make_rdma_connector(loop, options);
}

}  // namespace stag::endpoint
