#include "endpoint/connector.h"

#include "endpoint/software.h"
#include "fabric/iwarp/iwarp_fabric.h"
#include "rpc/rdma/channel.h"
#include "rpc/tcp/channel.h"
#include "rpc/udp/channel.h"

namespace stag::endpoint {
namespace {

rpc::rdma::ChannelOptions for_software(rpc::rdma::ChannelOptions options) {
  options.transport = endpoint::for_software(options.transport);
  return options;
}

class IwarpConnector final : public rpc::Connector {
 public:
  IwarpConnector(net::EpollLoop& loop, const ConnectorOptions& options)
      : fabric_(loop, options.iwarp), connector_(fabric_, for_software(options.rdma)) {}
  Loop& loop() override { return fabric_.loop(); }
  Task<Result<std::unique_ptr<rpc::Channel>, rpc::CallError>> connect(Address server,
                                                                      CancelToken cancel) override {
    return connector_.connect(std::move(server), cancel);
  }

 private:
  fabric::IwarpFabric fabric_;
  rpc::rdma::Connector connector_;
};

}  // namespace

bool has_fabric(FabricKind fabric) {
  return fabric == FabricKind::Iwarp;
}

Result<std::unique_ptr<rpc::Connector>, Reason> make_connector(net::EpollLoop& loop,
                                                               const ConnectorOptions& options) {
  std::unique_ptr<rpc::Connector> connector;
  if (options.transport == Transport::Tcp)
    connector = std::make_unique<rpc::tcp::TcpConnector>(loop, options.tcp);
  else if (options.transport == Transport::Udp)
    connector = std::make_unique<rpc::udp::UdpConnector>(loop, options.udp);
  else if (has_fabric(options.fabric))
    connector = std::make_unique<IwarpConnector>(loop, options);
  else
    return Failure{Reason::FabricUnavailable};
  return connector;
}

}  // namespace stag::endpoint
