#include "nfs/client/protocol/caller.h"

#include <algorithm>

#include "base/pause.h"
#include "nfs/proto/nfs3.h"

namespace stag::nfs::client {

Caller::Caller(rpc::Channel& channel, const CallerOptions& options, rpc::Binding binding,
               ToStatus to_status)
    : client_(channel, binding, options.credentials), options_(options), to_status_(to_status) {}

rpc::CallOptions Caller::call_options(std::span<const rpc::ResultBuffer> sinks) const {
  rpc::CallOptions options;
  options.timeout = options_.timeout;
  options.cancel = options_.cancel;
  options.sinks = sinks;
  return options;
}

Task<Outcome<Ok>> Caller::ping(OperationContext context, std::uint32_t version) {
  const rpc::CallResult<Ok> answer =
      co_await client_.ping(v3::NFS_PROGRAM, version, call_options({}));
  if (!answer) co_return Failure{Error::of_call(context, answer.error())};
  co_return Ok{};
}

namespace {

Duration jukebox_limit(const CallerOptions& options) {
  if (options.timeout == Duration::zero()) return options.jukebox_for;
  return std::min(options.jukebox_for, options.timeout);
}

}  // namespace

Caller::JukeboxRetry::JukeboxRetry(Caller& caller)
    : caller_(caller),
      end_(caller.channel().loop().now() + jukebox_limit(caller.options_)),
      next_(caller.options_.jukebox_pause_min) {}

bool Caller::JukeboxRetry::left() const {
  return caller_.channel().loop().now() < end_ && !caller_.options_.cancel.cancelled();
}

Task<void> Caller::JukeboxRetry::pause() {
  Loop& loop = caller_.channel().loop();
  const Duration left = std::max(end_ - loop.now(), Duration::zero());
  const Duration length = std::min(next_, left);
  next_ = std::min(next_ * 2, caller_.options_.jukebox_pause_max);
  co_await stag::pause(loop, length, caller_.options_.cancel);
}

}  // namespace stag::nfs::client
