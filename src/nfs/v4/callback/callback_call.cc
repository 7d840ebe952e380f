#include "nfs/v4/callback/callback_call.h"

#include <algorithm>

#include "base/reason.h"
#include "nfs/v4/attributes/attribute_set.h"
#include "oncrpc/message.h"
#include "xdr/decoder.h"
#include "xdr/encoder.h"

namespace stag::nfs::nfs4 {

namespace {

constexpr Duration kCallbackTimeout = std::chrono::seconds(10);
// Of the smallest header of RPC-over-RDMA, which the inline threshold counts (RFC 8166 3.3.1).
constexpr std::uint32_t kTransportHeader = 28;
// CB_SEQUENCE and the longest of the operations that are sent, with a tag. Within any threshold, so
// that no callback offers a chunk for its Reply.
constexpr std::uint32_t kResultsMax = 256;

bool is_probe(const CallbackRequest& request) {
  return request.compound.argarray.empty();
}

// RFC 8267 6.5.2: a Long Call goes to a client only that takes more than an inline message holds.
bool fits(std::size_t size, const CallbackRequest& request, const rpc::ChannelLimits& limits) {
  if (is_probe(request)) return true;
  if (size > request.request_max) return false;
  if (size <= limits.call_max) return true;
  return limits.chunks && request.request_max > std::uint64_t{limits.call_max} + kTransportHeader;
}

// The program number is the client's choice (RFC 8881 18.36.3), so the message is made here.
rpc::CallMessage message_of(const CallbackRequest& request, rpc::Channel& channel) {
  rpc::CallMessage message;
  message.xid = channel.next_xid();
  oncrpc::CallHeader header;
  header.xid = message.xid;
  header.program = request.program;
  header.version = v4::NFS_CB;
  header.procedure = is_probe(request) ? v4::CB_NULL::number : v4::CB_COMPOUND::number;
  xdr::Encoder encoder;
  oncrpc::encode(encoder, header, request.credentials.encoded());
  if (!is_probe(request)) encode(encoder, request.compound);
  message.stream = std::move(encoder).finish();
  message.reply.payload_max =
      std::min(oncrpc::kReplyHeaderSize + kResultsMax, request.response_max);
  message.deadline = channel.loop().now() + kCallbackTimeout;
  return message;
}

// Both attributes and no other, in the order of their numbers (RFC 8881 5.6). Linux's bitmap has a
// second word, which is zero.
std::optional<HeldAttributes> held_attributes(const v4::fattr4& attributes) {
  constexpr AttributeSet kWanted = {v4::FATTR4_CHANGE, v4::FATTR4_SIZE};
  const Buffer values = attributes.attr_vals.flatten();
  if (AttributeSet::has_unknown(attributes.attrmask) ||
      AttributeSet(attributes.attrmask) != kWanted || values.size() != 2 * sizeof(std::uint64_t))
    return std::nullopt;
  return HeldAttributes{load_be<std::uint64_t>(values.bytes().data()),
                        load_be<std::uint64_t>(values.bytes().data() + sizeof(std::uint64_t))};
}

CallbackOutcome outcome_of(v4::CB_COMPOUND4res& results, std::uint32_t minor) {
  CallbackOutcome outcome{CallbackOutcome::Kind::Answered, results.status, results.status};
  auto& operations = results.resarray;
  const std::size_t behind = minor == 0 ? 0 : 1;
  if (behind != 0) {
    if (operations.empty() || operations[0].resop != v4::OP_CB_SEQUENCE) return outcome;
    outcome.sequence = operations[0].opcbsequence().csr_status;
  }
  if (operations.size() <= behind || operations[behind].resop != v4::OP_CB_GETATTR) return outcome;
  v4::CB_GETATTR4res& found = operations[behind].opcbgetattr();
  if (found.status == v4::NFS4_OK)
    outcome.attributes = held_attributes(found.resok4().obj_attributes);
  return outcome;
}

CallbackOutcome outcome_of(const CallbackRequest& request, const rpc::ReplyMessage& reply,
                           const std::string& where) {
  xdr::Decoder decoder(reply.payload);
  const auto header = oncrpc::decode_reply(decoder);
  if (header && header->status.success()) {
    if (is_probe(request)) return {CallbackOutcome::Kind::Answered};
    v4::CB_COMPOUND4res results;
    if (decode(decoder, results) && decoder.finish())
      return outcome_of(results, request.compound.minorversion);
  }
  trace(Reason::RpcResultsMalformed, where, "callback of NFS version 4");
  return {};
}

Task<CallbackOutcome> perform(rpc::Channel& channel, const CallbackRequest& request) {
  const auto limits = channel.limits();
  if (!limits) co_return CallbackOutcome{};
  rpc::CallMessage message = message_of(request, channel);
  if (!message.stream.ok() || !fits(message.stream.size(), request, *limits))
    co_return CallbackOutcome{CallbackOutcome::Kind::Unsent};
  const auto reply = co_await channel.call(message);
  if (reply) co_return outcome_of(request, *reply, channel.where());
  trace(reply.error().reason, channel.where(), "callback of NFS version 4");
  co_return CallbackOutcome{};
}

Task<void> perform_and_tell(std::shared_ptr<rpc::Channel> channel, CallbackRequest request,
                            Loop& home, CallbackDone done) {
  const CallbackOutcome outcome = co_await call_back(*channel, request);
  home.post([done = std::move(done), outcome]() mutable { done(outcome); });
}

}  // namespace

Task<CallbackOutcome> call_back(rpc::Channel& channel, const CallbackRequest& request) {
  CallbackOutcome outcome;
  try {
    outcome = co_await perform(channel, request);
  } catch (const std::bad_alloc&) {
    outcome = {};
  }
  co_return outcome;
}

void call_back(std::shared_ptr<rpc::Channel> channel, CallbackRequest request, Loop& home,
               CallbackDone done) {
  Loop& loop = channel->loop();
  // The Channel's last reference may be this one: it goes on the Channel's loop.
  loop.post([channel = std::move(channel), request = std::move(request), &home,
             done = std::move(done)]() mutable {
    detach(perform_and_tell(std::move(channel), std::move(request), home, std::move(done)));
  });
}

}  // namespace stag::nfs::nfs4
