// RetryingClient: a rpc::Client for NFS procedures. It repeats a call for a while when the server
// answers Status::Delay, and turns every other status and every failed call into an Error with a
// sentence. v2/ and v3/ are built on it.
#pragma once

#include <span>
#include <utility>

#include "nfs/client/protocol/error.h"
#include "nfs/client/protocol/options.h"

namespace stag::nfs::client {

// How long, and with which pauses, a call is repeated that the server is not ready for (RFC 1813
// section 2.6, RFC 8881 section 15.1.1.3): from when this is made.
class JukeboxRetry {
 public:
  // `lease`: of a server of version 4. Where nobody asked for other times, its grace period is
  // waited for, which is that long unless its administrator says so (RFC 8881 section 8.4.2).
  JukeboxRetry(Loop& loop, const ProtocolOptions& options, Duration lease = Duration::zero());
  bool left() const;
  TimePoint end() const { return end_; }
  // Ends early when cancelled.
  Task<void> pause();

 private:
  Loop& loop_;
  CancelToken cancel_;
  Duration longest_;
  TimePoint end_;
  Duration next_;
};

// Copies of a RetryingClient share the Channel, which outlives them.
class RetryingClient {
 public:
  // Maps a status of the procedures to a Status; 0 to Ok.
  using ToStatus = Status (*)(std::uint32_t status);

  RetryingClient(rpc::Channel& channel, const ProtocolOptions& options, rpc::Binding binding,
                 ToStatus to_status);

  template <class P>
  using Resok = std::remove_cvref_t<decltype(std::declval<typename P::Results&>().resok())>;

  // Calls procedure P and yields its results of success. `args` and the objects that `context` and
  // `result_buffers` refer to outlive the Task. `results_max`: see rpc::CallOptions.
  template <xdr::Procedure P>
  Task<Outcome<Resok<P>>> call(const typename P::Args& args, OperationContext context,
                               std::span<const rpc::ResultBuffer> result_buffers = {},
                               std::optional<std::uint32_t> results_max = std::nullopt) {
    JukeboxRetry retry(client_.channel().loop(), options_);
    for (;;) {
      rpc::CallOptions options = call_options(result_buffers);
      options.results_max = results_max;
      rpc::Client::Exchange<P> exchange(client_, args, options);
      Result<rpc::ReplyMessage, rpc::CallError> reply = co_await exchange.send();
      rpc::CallResult<typename P::Results> results = exchange.results(reply);
      if (!results) co_return Failure{Error::of_call(context, results.error())};
      if (static_cast<std::uint32_t>(results->status) == 0) co_return std::move(results->resok());
      const Status status = to_status_(static_cast<std::uint32_t>(results->status));
      // RFC 1813 2.6: the request was not executed; try it again, as a new one.
      if (status != Status::Delay || !retry.left())
        co_return Failure{Error::of_status(context, status)};
      co_await retry.pause();
    }
  }

  // The NULL procedure of a version of NFS.
  Task<Outcome<Ok>> ping(OperationContext context, std::uint32_t version);

  rpc::Client& client() { return client_; }
  rpc::Channel& channel() const { return client_.channel(); }
  const ProtocolOptions& options() const { return options_; }
  rpc::CallOptions call_options(std::span<const rpc::ResultBuffer> result_buffers) const;

 private:
  rpc::Client client_;
  ProtocolOptions options_;
  ToStatus to_status_;
};

}  // namespace stag::nfs::client
