#include "rpc/tcp/responder.h"

namespace stag::rpc::tcp {

void Responder::on_call(Buffer record) {
  if (++active_ >= max_calls_ && stream_ != nullptr) stream_->pause();
  tasks_.add(serve(shared_from_this(), std::move(record)));
}

Task<void> Responder::serve(std::shared_ptr<Responder> self, Buffer record) {
  IncomingCall call;
  call.origin = self->origin_;
  call.payload = std::move(record);
  std::optional<OutgoingReply> reply = co_await self->service_.serve(call);
  --self->active_;
  self->send(reply);
}

void Responder::send(const std::optional<OutgoingReply>& reply) {
  if (stream_ == nullptr) return;
  if (reply) {
    Rope message = reply->stream.rope();
    if (message.size() < oncrpc::kLastFragment)
      stream_->send(std::move(message));
    else
      trace(Reason::RpcReplyTooLong, to_string(origin_->peer));
  }
  if (active_ < max_calls_) stream_->resume();
}

}  // namespace stag::rpc::tcp
