#include "nfs/client/protocol/retrying_client.h"

#include <algorithm>

#include "base/pause.h"
#include "nfs/proto/nfs3.h"

namespace stag::nfs::client {

RetryingClient::RetryingClient(rpc::Channel& channel, const ProtocolOptions& options,
                               rpc::Binding binding, ToStatus to_status)
    : client_(channel, binding, options.credentials), options_(options), to_status_(to_status) {}

rpc::CallOptions RetryingClient::call_options(
    std::span<const rpc::ResultBuffer> result_buffers) const {
  rpc::CallOptions options;
  options.timeout = options_.timeout;
  options.cancel = options_.cancel;
  options.result_buffers = result_buffers;
  return options;
}

Task<Outcome<Ok>> RetryingClient::ping(OperationContext context, std::uint32_t version) {
  const rpc::CallOptions options = call_options({});
  rpc::Client::NullExchange exchange(client_, v3::NFS_PROGRAM, version, options);
  Result<rpc::ReplyMessage, rpc::CallError> reply = co_await exchange.send();
  const rpc::CallResult<Ok> answer = exchange.results(reply);
  if (!answer) co_return Failure{Error::of_call(context, answer.error())};
  co_return Ok{};
}

namespace {

// Of a server that has begun again: until it does so, and until a client has asked once more.
constexpr Duration kBehindGrace = std::chrono::seconds(30);

Duration jukebox_limit(const ProtocolOptions& options, Duration lease) {
  if (options.timeout == ProtocolOptions::kUsualTimeout &&
      options.jukebox_for == ProtocolOptions::kUsualJukeboxFor)
    return std::max(options.jukebox_for, lease + kBehindGrace);
  if (options.timeout == Duration::zero()) return options.jukebox_for;
  return std::min(options.jukebox_for, options.timeout);
}

}  // namespace

JukeboxRetry::JukeboxRetry(Loop& loop, const ProtocolOptions& options, Duration lease)
    : loop_(loop),
      cancel_(options.cancel),
      longest_(options.jukebox_pause_max),
      end_(loop.now() + jukebox_limit(options, lease)),
      next_(options.jukebox_pause_min) {}

bool JukeboxRetry::left() const {
  return loop_.now() < end_ && !cancel_.cancelled();
}

Task<void> JukeboxRetry::pause() {
  const Duration left = std::max(end_ - loop_.now(), Duration::zero());
  const Duration length = std::min(next_, left);
  next_ = std::min(next_ * 2, longest_);
  co_await stag::pause(loop_, length, cancel_);
}

}  // namespace stag::nfs::client
