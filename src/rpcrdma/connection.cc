#include "rpcrdma/connection.h"

#include <algorithm>

namespace stag::rpcrdma {
namespace {

RequesterSettings requester_settings(const Settings& settings) {
  return {.credits = std::max(1u, settings.credits_requested),
          .reserve_probe_credit = settings.reserve_probe_credit,
          .chunks = settings.requests_chunks,
          .limits = {.call_threshold = settings.thresholds.send,
                     .reply_threshold = settings.thresholds.receive,
                     .max_segments = settings.max_segments,
                     .quirks = settings.quirks},
          .may_be_invalidated = settings.thresholds.may_be_invalidated};
}

ResponderSettings responder_settings(const Settings& settings) {
  return {.credits = settings.credits_granted,
          .serves_chunks = settings.serves_chunks,
          .reply_threshold = settings.thresholds.send,
          .may_invalidate = settings.thresholds.may_invalidate,
          .max_bytes = settings.max_bytes,
          .max_reads = settings.max_reads,
          .usual_result_bytes = settings.usual_result_bytes,
          .budget = settings.budget};
}

}  // namespace

Connection::Connection(const Settings& settings, Sink& sink)
    : header_limits_(settings.header_limits),
      sink_(sink),
      requester_(requester_settings(settings), sink),
      responder_(responder_settings(settings), sink) {}

// RFC 8166 3.3.1, RFC 8167 4.3: a Receive for every Reply that may be on its way and for every Call
// that may be granted.
void Connection::start() {
  sink_.post_receives(requester_.credits() + responder_.credits() + kSpareReceives);
}

void Connection::serve_calls(std::uint32_t credits) {
  const std::uint32_t before = responder_.credits();
  if (credits <= before) return;
  sink_.post_receives(credits - before);
  responder_.serve(credits);
}

void Connection::on_receive(Bytes message, std::optional<std::uint32_t> invalidated) {
  if (closed_) return;
  sink_.post_receives(1);
  const std::uint32_t xid = message.size() < 4 ? 0 : load_be<std::uint32_t>(message.data());
  if (invalidated && !requester_.may_invalidate(xid, *invalidated)) {
    closed_ = true;
    return sink_.close(Reason::RdmaWrongHandleInvalidated);
  }
  if (decode_plain_header(message, *arrived_))
    return on_message(*arrived_, message.subspan(kMinHeaderSize), invalidated);
  if (is_error(message)) {
    const Result<ErrorMessage, Reason> error = decode_error(message);
    if (!error) return sink_.drop(error.error());
    return requester_.on_error(*error);
  }
  HeaderFault fault;
  if (decode_header(message, header_limits_, *arrived_, fault))
    on_message(*arrived_, message.subspan(arrived_->size), invalidated);
  else
    on_fault(fault);
  // Memory that many chunks took is not kept.
  if (arrived_->header.has_chunks()) arrived_.emplace();
}

// RFC 8166 4.5: answered by a Responder, dropped by a Requester. A message without a Read list that
// names a Call of ours may be its Reply.
void Connection::on_fault(const HeaderFault& fault) {
  const bool may_be_reply = !fault.has_read_list && requester_.awaits(fault.xid);
  if (fault.answer == HeaderErrorReply::Nothing || may_be_reply) return sink_.drop(fault.reason);
  responder_.on_fault(fault);
}

inline void Connection::on_message(const ParsedHeader& parsed, Bytes payload,
                                   std::optional<std::uint32_t> invalidated) {
  const Header& header = parsed.header;
  const bool has_read_list = !header.read_list.empty();
  const auto fault = [&](Reason reason) {
    on_fault({reason, HeaderErrorReply::ErrChunk, header.xid, kVersion, has_read_list});
  };
  if (header.proc == RDMA_NOMSG) {
    if (has_read_list) return responder_.on_call(parsed, {});
    // Only a Reply has its stream in a Reply chunk, but when no Reply can come it is a Call without
    // a stream.
    if (requester_.in_flight() == 0) return fault(Reason::RdmaStreamMissing);
    return requester_.on_reply(parsed, {}, invalidated);
  }
  if (payload.size() < 8) return fault(Reason::RdmaPayloadTooShort);
  const auto direction = load_be<std::uint32_t>(payload.data() + 4);
  if (direction == CALL) return responder_.on_call(parsed, payload);
  if (direction != REPLY) return fault(Reason::RdmaDirectionBad);
  // RFC 8166 4.3.1: the Read list of a Reply is empty.
  if (has_read_list) return sink_.drop(Reason::RdmaReplyHasReadList);
  requester_.on_reply(parsed, payload, invalidated);
}

void Connection::on_disconnect(Reason reason) {
  closed_ = true;
  responder_.on_disconnect(reason);
  requester_.on_disconnect(reason);
}

}  // namespace stag::rpcrdma
