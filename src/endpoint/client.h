// endpoint::Client: a connection to one server with calls that block the calling thread, for
// programs without loops and coroutines of their own.
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

// Thread: any number at a time, none of them a loop's. Its destruction, after the last call has
// returned, ends the security context of its credentials, which takes two seconds where the server
// does not answer, and closes the connection.
class Client {
 public:
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  // Calls procedure P. Blocks until the Reply comes, the call times out, or `options.cancel`
  // cancels it; a CancelSource is used on loop() only. Errors: rpc::CallError.
  template <xdr::Procedure P>
  rpc::CallResult<typename P::Results> call(const typename P::Args& args,
                                            rpc::CallOptions options = {}) {
    return wait_on(loop(), [&] { return rpc().call<P>(args, options); });
  }
  // Calls procedure 0 (NULL) of a program: one round trip.
  rpc::CallResult<Ok> ping(std::uint32_t program, std::uint32_t version,
                           rpc::CallOptions options = {}) {
    return wait_on(loop(), [&] { return rpc().ping(program, version, options); });
  }

  // The client and the loop below, for coroutines; rpc() is used on loop() only.
  rpc::Client& rpc() const;
  net::EpollLoop& loop() const;

 private:
  friend Result<Client, rpc::CallError> connect(const Address& server, ConnectOptions options);
  struct State;
  explicit Client(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Connects to `server`. Blocks until the connection is up, or fails with the reason
// (connect_timeout in `options`).
Result<Client, rpc::CallError> connect(const Address& server, ConnectOptions options = {});

}  // namespace stag::endpoint
