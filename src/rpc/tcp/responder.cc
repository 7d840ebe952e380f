#include "rpc/tcp/responder.h"

#include "base/failure.h"

namespace stag::rpc::tcp {

void Responder::on_call(Buffer record) {
  if (held_.empty() && may_start())
    start(std::move(record));
  else
    held_.push_back(std::move(record));
  start_held();
}

bool Responder::may_start() const {
  return stream_ != nullptr && !starting_ && active_ < max_calls_ && !stream_->congested();
}

void Responder::start(Buffer record) {
  // A Call answered at once must not start the next one from inside itself: thousands of them
  // would nest.
  starting_ = true;
  try {
    tasks_.add(serve(shared_from_this(), std::move(record)));
  } catch (...) {
    give_up(trace_exception(Reason::RpcHandlerFailed, where_));
  }
  starting_ = false;
}

void Responder::start_held() {
  if (starting_) return;
  while (!held_.empty() && may_start()) {
    Buffer record = std::move(held_.front());
    held_.pop_front();
    start(std::move(record));
  }
  if (stream_ == nullptr) return;
  if (held_.empty() && active_ < max_calls_)
    stream_->resume();
  else
    stream_->pause();
}

Task<void> Responder::serve(std::shared_ptr<Responder> self, Buffer record) {
  IncomingCall call;
  call.origin = self->origin_;
  call.payload = std::move(record);
  ++self->active_;
  try {
    const std::optional<OutgoingReply> reply = co_await self->service_.serve(call);
    if (reply) self->send(*reply);
  } catch (...) {
    self->give_up(trace_exception(Reason::RpcHandlerFailed, self->where_));
  }
  --self->active_;
  self->start_held();
}

void Responder::send(const OutgoingReply& reply) {
  if (stream_ == nullptr) return;
  Rope message = reply.stream.rope();
  if (message.size() < oncrpc::kLastFragment)
    stream_->send(std::move(message));
  else
    trace(Reason::RpcReplyTooLong, where_);
}

void Responder::give_up(Reason reason) {
  if (stream_ != nullptr) stream_->close(reason);
}

void Responder::detach() {
  stream_ = nullptr;
  held_.clear();
}

}  // namespace stag::rpc::tcp
