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

Client::AnyExchange::AnyExchange(const Client& client, std::uint32_t program, std::uint32_t version,
                                 std::uint32_t procedure, const CallOptions& options)
    : client_(client),
      options_(options),
      // NULL has neither arguments nor results.
      binding_(procedure == 0 ? nullptr : client.binding_.find(program, version, procedure)),
      encoder_(watched_arguments(binding_)),
      credentials_(options.credentials != nullptr ? *options.credentials : client.credentials_) {
  message_.xid = client.channel_->next_xid();
  oncrpc::CallHeader header;
  header.xid = message_.xid;
  header.program = program;
  header.version = version;
  header.procedure = procedure;
  if (credentials_.security() == nullptr)
    oncrpc::encode(encoder_, header, credentials_.encoded());
  else
    secured_.emplace(*credentials_.security(), header);
}

// If there are eligible items, their size is what varies; the Binding knows how large the rest can
// be.
void Client::AnyExchange::limit_results() {
  const std::uint32_t most = *options_.results_max;
  ReplyBound& bound = message_.reply;
  bound.payload_max = bound.items.empty() ? most : std::min(bound.payload_max, most);
  const std::uint32_t left = most - std::min(most, bound.payload_max);
  for (ItemBound& item : bound.items) item.max_length = std::min(item.max_length, left);
}

// False when the arguments break a bound of their type.
bool Client::AnyExchange::complete() {
  message_.stream = std::move(encoder_).finish();
  if (!message_.stream.ok()) return false;
  // An error Reply must fit too.
  constexpr std::uint32_t kErrorBody = oncrpc::kMaxErrorReplySize - oncrpc::kReplyHeaderSize;
  std::uint32_t& payload_max = message_.reply.payload_max;
  payload_max = saturating_add(std::max(payload_max, kErrorBody), oncrpc::kReplyHeaderSize);
  if (binding_ != nullptr) {
    message_.reply.pairing = binding_->pairing;
    message_.eligible_arguments = binding_->arguments.ids();
    message_.eligible_results = binding_->results.ids();
    message_.retry_short_reply = binding_->retry_short_reply;
  }
  message_.cancel = options_.cancel;
  message_.result_buffers = options_.result_buffers;
  const Duration timeout = options_.timeout.value_or(client_.options_.timeout);
  if (timeout > Duration::zero()) message_.deadline = client_.channel_->loop().now() + timeout;
  if (secured_) secured_->take(message_);
  return true;
}

Task<Result<ReplyMessage, CallError>> Client::AnyExchange::send() {
  if (!complete()) return unencodable(client_.channel_->where());
  return secured_ ? secured_->call(*client_.channel_, message_) : client_.channel_->call(message_);
}

Task<Result<ReplyMessage, CallError>> Client::AnyExchange::unencodable(std::string where) {
  co_return Failure{CallError::transport(Reason::RpcArgumentsUnencodable, std::move(where))};
}

xdr::Decoder Client::AnyExchange::decoder_of(ReplyMessage& reply) const {
  reply.items.place_in(options_.result_buffers);
  if (binding_ != nullptr) reply.items.allow(binding_->results.ids());
  const bool plain = reply.items.empty() && options_.result_buffers.empty();
  return xdr::Decoder(reply.payload, plain ? nullptr : &reply.items);
}

std::optional<CallError> Client::AnyExchange::header_fault(xdr::Decoder& decoder) const {
  const ClientSecurity* const security = credentials_.security();
  // The mechanism has read the header: here are only results.
  if (security != nullptr && security->transforms()) return std::nullopt;
  const Result<oncrpc::ReplyHeader, Reason> header = oncrpc::decode_reply(decoder);
  if (!header) return CallError::malformed(header.error(), client_.channel_->where());
  if (header->status.success()) return std::nullopt;
  return CallError::answered(header->status, client_.channel_->where());
}

CallError Client::AnyExchange::malformed(const xdr::Decoder& decoder) const {
  trace(Reason::RpcResultsMalformed, client_.channel_->where(), xdr::to_string(decoder.error()));
  return CallError::malformed(Reason::RpcResultsMalformed, client_.channel_->where());
}

Task<CallResult<Ok>> Client::ping(std::uint32_t program, std::uint32_t version,
                                  CallOptions options) {
  NullExchange exchange(*this, program, version, options);
  Result<ReplyMessage, CallError> reply = co_await exchange.send();
  co_return exchange.results(reply);
}

}  // namespace stag::rpc
