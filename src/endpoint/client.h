// A connection to one server and calls that block: no loop, no coroutine in sight.
//
//   auto client = stag::endpoint::connect({"server", 20049}, {.binding = kMyBinding});
//   if (!client.ok()) ... client.error().message() ...
//   auto result = client->call<MYPROC_GREET>(args);
#pragma once

#include <memory>

#include "base/address.h"
#include "endpoint/options.h"
#include "rpc/client.h"

namespace stag::endpoint {

// Any number of threads may call at a time, none of them a loop's. Destroyed after the last call
// has returned; ends the connection.
class Client {
 public:
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  // Blocks until the Reply, the time-out or the loss of patience in `options`. A CancelSource of
  // `options` is pulled on loop() only.
  template <xdr::Procedure P>
  rpc::CallResult<typename P::Results> call(const typename P::Args& args,
                                            rpc::CallOptions options = {}) {
    return wait_on(loop(), [&] { return rpc().call<P>(args, options); });
  }
  // The procedure 0 of a program.
  rpc::CallResult<Ok> ping(std::uint32_t program, std::uint32_t version,
                           rpc::CallOptions options = {}) {
    return wait_on(loop(), [&] { return rpc().ping(program, version, options); });
  }

  // For coroutines: used on loop() only.
  rpc::Client& rpc() const;
  net::EpollLoop& loop() const;

 private:
  friend Result<Client, rpc::CallError> connect(const Address& server, ConnectOptions options);
  struct State;
  explicit Client(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Blocks until the connection is up or the reason why not is known.
Result<Client, rpc::CallError> connect(const Address& server, ConnectOptions options = {});

}  // namespace stag::endpoint
