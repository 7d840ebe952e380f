#include "rpc/secured_call.h"

#include <algorithm>
#include <utility>

#include "base/failure.h"
#include "rpc/channel.h"

namespace stag::rpc {

Result<xdr::Stream, Reason> CallSecurity::wrap(const xdr::Stream& arguments) {
  return arguments;
}

Task<Result<Buffer, Reason>> CallSecurity::unwrap(Buffer results) {
  co_return std::move(results);
}

Task<void> ClientSecurity::end(Channel& /*channel*/) {
  co_return;
}

void SecuredCall::take(CallMessage& message) {
  arguments_ = std::exchange(message.stream, {});
  message.signer = this;
  std::uint64_t reply_max = message.reply.payload_max;
  if (security_.transforms()) {
    // Items that would have gone by Write chunks go with the rest of the Reply.
    reply_max = message.reply.total_max();
    message.reply.items.clear();
    message.eligible_arguments = {};
    message.eligible_results = {};
  }
  message.reply.payload_max = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(reply_max + security_.reply_overhead(), ~std::uint32_t{0}));
}

// Transports send from places where nothing may be thrown.
Result<Ok, Reason> SecuredCall::sign(CallMessage& message) {
  try {
    return make(message);
  } catch (...) {
    return Failure{trace_exception(Reason::RpcProtectionFailed)};
  }
}

// RFC 2203 5.3.1: the verifier is made of the header up to the credential, so that comes first.
Result<Ok, Reason> SecuredCall::make(CallMessage& message) {
  ++unanswered_;
  const Result<oncrpc::OpaqueAuth, Reason> credential = transmissions_->credential();
  if (!credential) return Failure{credential.error()};
  header_.xid = message.xid;
  xdr::Encoder signed_part;
  oncrpc::encode(signed_part, header_, {});
  oncrpc::encode(signed_part, *credential);
  const Buffer start = std::move(signed_part).finish().head();
  const Result<oncrpc::OpaqueAuth, Reason> verifier = transmissions_->verifier(start.bytes());
  if (!verifier) return Failure{verifier.error()};
  xdr::Encoder whole;
  whole.fixed_opaque(start.bytes());
  oncrpc::encode(whole, *verifier);
  if (security_.transforms()) {
    const Result<xdr::Stream, Reason> wrapped = transmissions_->wrap(arguments_);
    if (!wrapped) return Failure{wrapped.error()};
    whole.append(*wrapped);
  } else {
    whole.append(arguments_);
  }
  message.stream = std::move(whole).finish();
  if (!message.stream.ok()) return Failure{Reason::RpcArgumentsUnencodable};
  return Ok{};
}

Task<Result<ReplyMessage, CallError>> SecuredCall::call(Channel& channel, CallMessage& message) {
  // While a server is restarted often, or has too many contexts, one after the other may be lost.
  constexpr int kMostRenewals = 8;
  for (int renewals = 0;; ++renewals) {
    auto begun = co_await security_.begin(channel, header_, message);
    if (!begun) co_return Failure{begun.error()};
    transmissions_ = *std::move(begun);
    Result<ReplyMessage, CallError> reply = co_await channel.call(message);
    if (!reply) co_return Failure{reply.error()};
    Result<ReplyMessage, CallError> opened = co_await open(channel, *std::move(reply));
    const bool refused = !opened && opened.error().kind == CallError::Kind::Answered &&
                         opened.error().status.reply == oncrpc::ReplyStat::MSG_DENIED &&
                         opened.error().status.reject == oncrpc::RejectStat::AUTH_ERROR;
    if (!refused || renewals == kMostRenewals) co_return opened;
    if (!transmissions_->renew(opened.error().status.auth)) co_return opened;
    // RFC 5531 section 9: it is another Call, for it did not run. The refusal is of one
    // transmission: where an earlier one was lost, that one may have run, and the server knows it
    // by its XID.
    if (--unanswered_ == 0) message.use_xid(channel.next_xid());
  }
}

Task<Result<ReplyMessage, CallError>> SecuredCall::open(Channel& channel, ReplyMessage reply) {
  xdr::Decoder decoder(reply.payload);
  const Result<oncrpc::ReplyHeader, Reason> header = oncrpc::decode_reply(decoder);
  if (!header) co_return Failure{CallError::malformed(header.error(), channel.where())};
  const oncrpc::ReplyStatus status = header->status;
  if (status.reply == oncrpc::ReplyStat::MSG_ACCEPTED &&
      !transmissions_->accepts(header->verifier)) {
    trace(Reason::RpcReplyUnverified, channel.where());
    co_return Failure{CallError::malformed(Reason::RpcReplyUnverified, channel.where())};
  }
  if (!status.success()) co_return Failure{CallError::answered(status, channel.where())};
  if (!security_.transforms()) co_return std::move(reply);
  Buffer results = decoder.rest();
  if (!results.owned()) results = Buffer::copy_of(results.bytes());
  Result<Buffer, Reason> plain = co_await transmissions_->unwrap(std::move(results));
  if (!plain) {
    trace(plain.error(), channel.where());
    co_return Failure{CallError::malformed(plain.error(), channel.where())};
  }
  reply.payload = *std::move(plain);
  co_return std::move(reply);
}

}  // namespace stag::rpc
