// How long an operation waits before it is sent, and how long its call then may take.
#include <algorithm>
#include <new>

#include "nfs/client/v4/in_progress.h"
#include "nfs/client/v4/session_client.h"

namespace stag::nfs::client::nfs4 {

// Pulled when an operation that waits is cancelled, or its time is over, with `done`, or then.
class SessionClient::TimeLimit {
 public:
  TimeLimit(const SessionClient& client, OperationContext context, const ProtocolOptions& options,
            CancelToken done, TimePoint latest)
      : client_(client),
        context_(context),
        options_(options),
        latest_(latest),
        cancelled_(options.cancel, [this] { over_.cancel(); }),
        done_(done, [this] { over_.cancel(); }) {
    look();
  }
  CancelToken token() { return over_; }

 private:
  // The coroutine that over_ resumes destroys this.
  void look() noexcept {
    Loop& loop = client_.channel().loop();
    const TimePoint end = std::min(client_.end_of(context_, options_), latest_);
    if (end == TimePoint::max()) return;
    if (loop.now() >= end) return over_.cancel();
    try {
      timer_ = loop.after(end - loop.now(), [this] { look(); });
    } catch (const std::bad_alloc&) {
      over_.cancel();
    }
  }

  const SessionClient& client_;
  const OperationContext context_;
  const ProtocolOptions& options_;
  const TimePoint latest_;
  CancelSource over_;
  const CancelCallback cancelled_, done_;
  Timer timer_;
};

void SessionClient::begin_to_wait(OperationContext& context) const {
  context.waits_since = channel().loop().now();
}

TimePoint SessionClient::end_of(const OperationContext& context,
                                const ProtocolOptions& options) const {
  if (options.timeout == Duration::zero()) return TimePoint::max();
  return std::max(context.waits_since, heard_) + options.timeout;
}

// What was waited for before leaves the call less time. Zero would be for ever.
rpc::CallOptions SessionClient::call_options(const OperationContext& context,
                                             const ProtocolOptions& options) const {
  rpc::CallOptions call = call_options_of(options);
  if (context.waits_since == TimePoint{} || options.timeout == Duration::zero()) return call;
  call.timeout = std::max(end_of(context, options) - channel().loop().now(), Duration(1));
  return call;
}

rpc::CallOptions SessionClient::call_options(const OperationContext& context,
                                             const Request& request,
                                             const ProtocolOptions& options) const {
  rpc::CallOptions call = call_options(context, options);
  call.result_buffers = request.result_buffers;
  call.results_max = request.results_max;
  return call;
}

Task<Outcome<Ok>> SessionClient::wait_in(WaitList& list, OperationContext context,
                                         const ProtocolOptions& options, CancelToken done,
                                         TimePoint latest) {
  TimeLimit limit(*this, context, options, done, latest);
  co_await list.wait(limit.token());
  if (options.cancel.cancelled()) co_return Failure{cancelled_error(context, channel())};
  if (done.cancelled()) co_return Ok{};
  const TimePoint now = channel().loop().now();
  const bool woken = !limit.token().cancelled() || now >= latest;
  if (woken && now < end_of(context, options)) co_return Ok{};
  co_return Failure{
      Error::of_call(context, rpc::CallError::transport(Reason::TimedOut, channel().where()))};
}

}  // namespace stag::nfs::client::nfs4
