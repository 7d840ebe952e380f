#include "endpoint/callback_listener.h"

#include "rpc/tcp/server.h"

namespace stag::endpoint {
namespace {

// A server needs one connection, and a second one when it has lost the first; any other that
// connects costs little.
rpc::tcp::ServerOptions callback_options() {
  rpc::tcp::ServerOptions options;
  options.max_connections = 16;
  options.max_connections_per_peer = 8;
  options.max_calls = 8;
  options.max_bytes = 256u << 10;
  options.max_bytes_all = 1u << 20;
  options.stream.records.record = 64u << 10;
  options.stream.records.fragments = 64;
  options.stream.queued = 64u << 10;
  return options;
}

class TcpCallbackListener final : public rpc::CallbackListener {
 public:
  TcpCallbackListener(net::EpollLoop& loop, Address at) : loop_(loop), at_(std::move(at)) {}
  Result<Address, Reason> listen(rpc::Service& service) override {
    auto server = rpc::tcp::TcpServer::listen(loop_, at_, service, {}, callback_options());
    if (!server) return Failure{server.error()};
    server_ = *std::move(server);
    return server_->local();
  }
  Task<void> close() override {
    if (server_) co_await server_->close();
    server_ = nullptr;
  }

 private:
  net::EpollLoop& loop_;
  const Address at_;
  std::unique_ptr<rpc::tcp::TcpServer> server_;
};

}  // namespace

std::unique_ptr<rpc::CallbackListener> make_callback_listener(net::EpollLoop& loop, Address at) {
  return std::make_unique<TcpCallbackListener>(loop, std::move(at));
}

}  // namespace stag::endpoint
