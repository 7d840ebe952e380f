#include "rpc/client.h"

#include <algorithm>
#include <limits>

namespace stag::rpc {
namespace {

std::span<const xdr::ItemId> watched_arguments(const ProcedureBinding* binding) {
  return binding == nullptr ? std::span<const xdr::ItemId>() : binding->arguments.ids();
}

std::uint32_t saturating_add(std::uint32_t a, std::uint32_t b) {
  return a > std::numeric_limits<std::uint32_t>::max() - b
             ? std::numeric_limits<std::uint32_t>::max()
             : a + b;
}

}  // namespace

void copy_into(const Rope& data, MutableBytes to) {
  STAG_CHECK(data.size() <= to.size());
  std::byte* next = to.data();
  for (const Buffer& piece : data.pieces()) {
    if (piece.data() != next) std::memmove(next, piece.data(), piece.size());
    next += piece.size();
  }
}

Client::Outgoing::Outgoing(std::uint32_t program, std::uint32_t version, std::uint32_t procedure,
                           const ProcedureBinding* procedure_binding, Client& client,
                           const CallOptions& call_options)
    : binding(procedure_binding),
      options(call_options),
      security(nullptr),
      encoder(watched_arguments(procedure_binding)) {
  const Credentials& credentials =
      options.credentials != nullptr ? *options.credentials : client.credentials_;
  security = credentials.security();
  message.xid = client.channel_->next_xid();
  oncrpc::CallHeader header;
  header.xid = message.xid;
  header.program = program;
  header.version = version;
  header.procedure = procedure;
  if (security == nullptr)
    oncrpc::encode(encoder, header, credentials.encoded());
  else
    secured.emplace(*security, header);
}

// If there are eligible items, their size is what varies; the Binding knows the size of the rest.
void Client::limit(ReplyBound& bound, std::uint32_t results_max) {
  if (bound.items.empty()) bound.payload_max = results_max;
  const std::uint32_t left = results_max - std::min(results_max, bound.payload_max);
  for (ItemBound& item : bound.items) item.max_length = std::min(item.max_length, left);
}

bool Client::prepare(Outgoing& out) const {
  CallMessage& message = out.message;
  message.stream = std::move(out.encoder).finish();
  if (!message.stream.ok()) return false;
  message.reply = std::move(out.bound);
  // An error Reply must fit too.
  constexpr std::uint32_t kErrorBody = oncrpc::kMaxErrorReplySize - oncrpc::kReplyHeaderSize;
  message.reply.payload_max =
      saturating_add(std::max(message.reply.payload_max, kErrorBody), oncrpc::kReplyHeaderSize);
  if (out.binding != nullptr) {
    message.reply.pairing = out.binding->pairing;
    message.eligible_arguments = out.binding->arguments.ids();
    message.eligible_results = out.binding->results.ids();
    message.retry_short_reply = out.binding->retry_short_reply;
  }
  message.cancel = out.options.cancel;
  message.sinks = out.options.sinks;
  const Duration timeout = out.options.timeout.value_or(options_.timeout);
  if (timeout > Duration::zero()) message.deadline = channel_->loop().now() + timeout;
  if (out.secured) out.secured->take(message);
  return true;
}

CallError Client::unencodable() const {
  return CallError::transport(Reason::RpcArgumentsUnencodable, channel_->where());
}

Client::Incoming::Incoming(Client& from, const Outgoing& out, ReplyMessage& message)
    : client(from),
      reply(message),
      plain(out.transforms()),
      decoder(message.payload,
              message.items.empty() && out.options.sinks.empty() ? nullptr : &message.items) {
  reply.items.place_in(out.options.sinks);
  if (out.binding != nullptr) reply.items.allow(out.binding->results.ids());
}

bool Client::Incoming::open() {
  if (plain) return true;
  Result<oncrpc::ReplyHeader, Reason> header = oncrpc::decode_reply(decoder);
  if (!header)
    fault = CallError::malformed(header.error(), client.channel_->where());
  else if (!header->status.success())
    fault = CallError::answered(header->status, client.channel_->where());
  return !fault.has_value();
}

bool Client::Incoming::close() {
  return decoder.finish().ok() && reply.items.all_taken();
}

CallError Client::Incoming::error() const {
  if (fault) return *fault;
  trace(Reason::RpcResultsMalformed, client.channel_->where(), xdr::to_string(decoder.error()));
  return CallError::malformed(Reason::RpcResultsMalformed, client.channel_->where());
}

Task<CallResult<Ok>> Client::ping(std::uint32_t program, std::uint32_t version,
                                  CallOptions options) {
  Outgoing out(program, version, 0, nullptr, *this, options);
  if (!prepare(out)) co_return Failure{unencodable()};
  Result<ReplyMessage, CallError> reply = co_await send(out);
  if (!reply) co_return Failure{reply.error()};
  Incoming in(*this, out, *reply);
  if (!in.open() || !in.close()) co_return Failure{in.error()};
  co_return Ok{};
}

}  // namespace stag::rpc
