#include "rpc/rdma/reverse_channel.h"

#include <algorithm>

namespace stag::rpc::rdma {

ReverseChannel::ReverseChannel(const std::shared_ptr<Link>& link, std::uint32_t xid_seed)
    : rpc::Channel(xid_seed), link_(link), loop_(link->loop()), where_(link->where()) {}

Task<Result<ReplyMessage, CallError>> ReverseChannel::call(CallMessage& message) {
  const std::shared_ptr<Link> link = link_.lock();
  if (link == nullptr || !link->up())
    co_return Failure{CallError::transport(Reason::ConnectionLost, where_)};
  const Result<Ok, Reason> made = message.begin_transmission();
  if (!made) co_return Failure{CallError::transport(made.error(), where_)};
  PendingCall call(message);
  Timer deadline;
  if (message.deadline)
    deadline = loop_.after(std::max(Duration::zero(), *message.deadline - loop_.now()),
                           [&] { link->give_up(call, Reason::TimedOut); });
  link->start(call);
  CancelCallback cancel(message.cancel, [&] { link->give_up(call, Reason::Cancelled); });
  co_await call.done();
  if (call.end->reason == Reason::None) co_return std::move(call.end->reply);
  CallError error = CallError::transport(call.end->reason, where_);
  error.sent = call.transmitted;
  co_return Failure{std::move(error)};
}

Task<void> ReverseChannel::close() {
  co_return;
}

void ReverseChannel::serve_reverse(Service&) {}

std::optional<ChannelLimits> ReverseChannel::limits() const {
  const std::shared_ptr<Link> link = link_.lock();
  if (link == nullptr || !link->up()) return std::nullopt;
  return link->limits();
}

}  // namespace stag::rpc::rdma
