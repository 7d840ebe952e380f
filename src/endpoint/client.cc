#include "endpoint/client.h"

#include <optional>

#include "base/failure.h"
#include "endpoint/connector.h"
#include "endpoint/quiet.h"
#include "rpc/client_security.h"

namespace stag::endpoint {

struct Client::State {
  std::shared_ptr<Loops> loops;
  std::unique_ptr<rpc::Connector> connector;
  std::unique_ptr<rpc::Channel> channel;
  rpc::Credentials credentials;
  std::optional<rpc::Client> client;
  rpc::Service* reverse = nullptr;

  net::EpollLoop& loop() const { return loops->at(0); }
  // RFC 2203 5.4: "the client need not take any special action" where the server does not hear it.
  void end_security_context() noexcept {
    rpc::ClientSecurity* const security = credentials.security();
    if (security == nullptr) return;
    try {
      wait_on(loop(), [&] { return security->end(*channel); });
    } catch (...) {
      trace_exception(Reason::TaskFailed, "end of a security context");
    }
  }
  ~State() {
    if (channel == nullptr) return;
    end_security_context();
    finish_on(loop(), [this] { return channel->close(); });
    // A handler of theirs runs on, and has the loop and what the Channel has made.
    if (reverse != nullptr) finish_on(loop(), [this] { return quiet(loop(), *reverse); });
    finish_on(loop(), [this] { channel = nullptr; });
  }
};

Client::Client(std::unique_ptr<State> state) : state_(std::move(state)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

rpc::Client& Client::rpc() const {
  return *state_->client;
}
net::EpollLoop& Client::loop() const {
  return state_->loop();
}

Result<Client, rpc::CallError> connect(const Address& server, ConnectOptions options) {
  auto loops = shared_or_own(std::move(options.loops));
  if (!loops) return Failure{rpc::CallError::transport(loops.error(), to_string(server))};
  auto state = std::make_unique<Client::State>();
  state->loops = *std::move(loops);
  state->connector = make_connector(state->loop(), options.connector);
  Result<std::unique_ptr<rpc::Channel>, rpc::CallError> channel =
      wait_on(state->loop(), [&] { return state->connector->connect(server, {}); });
  if (!channel) return Failure{channel.error()};
  state->channel = *std::move(channel);
  state->reverse = options.reverse;
  if (options.reverse != nullptr)
    run_on(state->loop(), [&] { state->channel->serve_reverse(*options.reverse); });
  state->credentials = std::move(options.credentials);
  state->client.emplace(*state->channel, options.binding, state->credentials, options.client);
  return Client(std::move(state));
}

}  // namespace stag::endpoint
