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
  explicit IwarpConnector(const ConnectorOptions& options)
      : fabric_(options.iwarp), connector_(fabric_, for_software(options.rdma)) {}
  Task<Result<std::unique_ptr<rpc::Channel>, rpc::CallError>> connect(Loop& loop, Address server,
                                                                      CancelToken cancel) override {
    return connector_.connect(loop, std::move(server), cancel);
  }

 private:
  fabric::IwarpFabric fabric_;
  rpc::rdma::Connector connector_;
};

}  // namespace

Result<std::unique_ptr<rpc::Connector>, Reason> make_connector(const ConnectorOptions& options) {
  std::unique_ptr<rpc::Connector> connector;
  if (options.transport == Transport::Tcp)
    connector = std::make_unique<rpc::tcp::TcpConnector>(options.tcp);
  else if (options.transport == Transport::Udp)
    connector = std::make_unique<rpc::udp::UdpConnector>(options.udp);
  else if (options.fabric == FabricKind::Iwarp)
    connector = std::make_unique<IwarpConnector>(options);
  else
    return Failure{Reason::FabricUnavailable};
  return connector;
}

}  // namespace stag::endpoint
