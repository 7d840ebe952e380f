#include "rpcrdma/requester.h"

#include <algorithm>

#include "base/check.h"

namespace stag::rpcrdma {
namespace {

template <class Function>
void for_each_segment(const Header& header, Function function) {
  for (const ReadChunk& chunk : header.read_list)
    for (const Segment& segment : chunk.segments) function(segment);
  for (const WriteChunk& chunk : header.write_list)
    for (const Segment& segment : chunk.segments) function(segment);
  if (!header.reply_chunk) return;
  for (const Segment& segment : header.reply_chunk->segments) function(segment);
}

// The lists of a Call, from memory the owner registered. Its lengths are ours to check: a mistake
// would expose the wrong bytes.
void add_lists(Header& header, const OutgoingCall& call, const CallPlan& plan,
               const ExposedChunks& exposed) {
  if (plan.form == Form::Long) {
    STAG_CHECK(total_length(exposed.position_zero) == plan.stream_length);
    header.read_list.push_back({0, exposed.position_zero});
  }
  STAG_CHECK(exposed.arguments.size() == plan.reduced.size());
  for (std::size_t i = 0; i < plan.reduced.size(); ++i) {
    const Item& item = call.shape.items[plan.reduced[i]];
    // RFC 8166 3.4.5.2: without the item's pad, or with all of it.
    STAG_CHECK(item.chunk_pad == 0 || item.chunk_pad == xdr_pad(item.length));
    STAG_CHECK(total_length(exposed.arguments[i]) == std::uint64_t{item.length} + item.chunk_pad);
    header.read_list.push_back({item.position, exposed.arguments[i]});
  }
  STAG_CHECK(exposed.results.size() == plan.write_chunks.size());
  for (std::size_t i = 0; i < plan.write_chunks.size(); ++i) {
    STAG_CHECK(total_length(exposed.results[i]) == plan.write_chunks[i]);
    header.write_list.push_back({exposed.results[i]});
  }
  if (plan.reply_chunk != 0) {
    STAG_CHECK(total_length(exposed.reply) == plan.reply_chunk);
    header.reply_chunk = WriteChunk{exposed.reply};
  }
}

// Bytes returned in a chunk we offered; nullopt when it is not that chunk (RFC 8166 3.4.6, 4.3.2).
// An empty chunk in place of an unused one is RFC 8267 6.4.1's way to say "nothing".
std::optional<std::uint32_t> returned_length(const WriteChunk& offered,
                                             const WriteChunk& returned) {
  if (returned.segments.empty()) return 0;
  if (returned.segments.size() != offered.segments.size()) return std::nullopt;
  std::uint32_t total = 0;
  bool full = true;
  for (std::size_t i = 0; i < offered.segments.size(); ++i) {
    const Segment& ours = offered.segments[i];
    const Segment& theirs = returned.segments[i];
    if (ours.handle != theirs.handle || ours.offset != theirs.offset) return std::nullopt;
    if (theirs.length > ours.length || (theirs.length != 0 && !full)) return std::nullopt;
    full = theirs.length == ours.length;
    total += theirs.length;
  }
  return total;
}

// RFC 8166 3.5.3, 4.2.4: RDMA_NOMSG has its stream in the Reply chunk, RDMA_MSG has none there.
Reason read_reply_chunk(const Header& sent, const Header& reply, ReplyArrival& arrival) {
  arrival.long_reply = reply.proc == RDMA_NOMSG;
  if (reply.reply_chunk) {
    if (!sent.reply_chunk) return Reason::RdmaReplyChunksDiffer;
    const auto length = returned_length(*sent.reply_chunk, *reply.reply_chunk);
    if (!length) return Reason::RdmaReplyChunksDiffer;
    arrival.reply_chunk_length = *length;
  }
  const bool used = arrival.reply_chunk_length != 0;
  return used == arrival.long_reply ? Reason::None : Reason::RdmaReplyFormBad;
}

// Compares a Reply with its Call. Write chunks that did not come back returned nothing.
Reason read_reply(const Header& sent, const Header& reply, Bytes payload, ReplyArrival& arrival) {
  if (const Reason reason = read_reply_chunk(sent, reply, arrival); reason != Reason::None)
    return reason;
  if (reply.write_list.size() > sent.write_list.size()) return Reason::RdmaReplyChunksDiffer;
  for (std::size_t i = 0; i < sent.write_list.size(); ++i) {
    std::optional<std::uint32_t> length = 0;
    if (i < reply.write_list.size())
      length = returned_length(sent.write_list[i], reply.write_list[i]);
    if (!length) return Reason::RdmaReplyChunksDiffer;
    arrival.written.push_back(*length);
  }
  if (!arrival.long_reply && load_be<std::uint32_t>(payload.data()) != reply.xid)
    return Reason::RdmaXidMismatch;
  arrival.payload = payload;
  return Reason::None;
}

}  // namespace

Requester::Requester(const RequesterSettings& settings, Sink& sink)
    : settings_(settings), sink_(sink) {}

Requester::~Requester() {
  STAG_CHECK(first_ == nullptr);
  in_flight_.for_each([](std::uint32_t, const OutgoingCall* call) { STAG_CHECK(call == nullptr); });
}

std::uint32_t Requester::credit_limit() const {
  return std::min(std::max(1u, settings_.credits), granted_);
}

inline void Requester::grant(std::uint32_t credits) {
  // RFC 8166 3.3.1 forbids a grant of 0; taken as such it would be a deadlock.
  granted_ = std::max(1u, credits);
}

void Requester::on_call(OutgoingCall& call) {
  STAG_CHECK(call.state_ == OutgoingCall::State::Idle);
  if (!open_) return fail(call, {closed_});
  // No call waits for credit before it, and there is some.
  if (first_ == nullptr && !sending_ && has_credit(call)) return send_first(call);
  call.state_ = OutgoingCall::State::Queued;
  // A probe goes first: there is at most one or two of them.
  OutgoingCall* const before = call.probe ? nullptr : last_;
  OutgoingCall* const after = call.probe ? first_ : nullptr;
  call.previous_ = before;
  call.next_ = after;
  (before != nullptr ? before->next_ : first_) = &call;
  (after != nullptr ? after->previous_ : last_) = &call;
  send_ready();
}

void Requester::unlink(OutgoingCall& call) {
  (call.previous_ != nullptr ? call.previous_->next_ : first_) = call.next_;
  (call.next_ != nullptr ? call.next_->previous_ : last_) = call.previous_;
  call.next_ = call.previous_ = nullptr;
  call.state_ = OutgoingCall::State::Idle;
}

void Requester::on_cancel(OutgoingCall& call) {
  if (call.state_ == OutgoingCall::State::Queued) return unlink(call);
  if (call.state_ == OutgoingCall::State::Idle) return;
  *in_flight_.find(call.xid) = nullptr;
  retire(call);
}

// Re-entered by a Sink that makes a call from inside fail_call(): the outer loop goes on with it.
void Requester::send_ready() {
  if (sending_) return;
  sending_ = true;
  while (OutgoingCall* call = next_ready()) {
    unlink(*call);
    send(*call);
  }
  sending_ = false;
}

// The same without the queue.
inline void Requester::send_first(OutgoingCall& call) {
  sending_ = true;
  send(call);
  sending_ = false;
  if (first_ != nullptr) send_ready();
}

OutgoingCall* Requester::next_ready() {
  return open_ && first_ != nullptr && has_credit(*first_) ? first_ : nullptr;
}

inline bool Requester::has_credit(const OutgoingCall& call) const {
  const std::uint32_t limit = credit_limit();
  const bool reserve = settings_.reserve_probe_credit && limit > 1 && !call.probe;
  return in_flight() < (reserve ? limit - 1 : limit);
}

// Where memory runs out the Call has ended before the exception goes on.
inline void Requester::send(OutgoingCall& call) {
  if (awaits(call.xid)) return fail(call, {Reason::RdmaOwnXidDuplicate});
  try {
    transmit(call);
  } catch (...) {
    sending_ = false;
    in_flight_.erase(call.xid);
    if (call.state_ == OutgoingCall::State::Sent) retire(call);
    fail(call, {Reason::OutOfMemory});
    throw;
  }
}

[[gnu::always_inline]] inline void Requester::transmit(OutgoingCall& call) {
  const Reason planned = plan_call(call.shape, call.bound, settings_.limits, call.plan_);
  if (planned != Reason::None) return fail(call, {planned});
  const bool needs_memory = call.plan_.needs_memory();
  if (!settings_.chunks && needs_memory) return fail(call, {Reason::RdmaChunksForbidden});
  call.header_.clear_chunks();
  call.header_.xid = call.xid;
  call.header_.credits = settings_.credits;
  call.header_.proc = call.plan_.form == Form::Long ? RDMA_NOMSG : RDMA_MSG;
  if (needs_memory) {
    const Result<ExposedChunks, Reason> exposed = sink_.expose(call);
    if (!exposed) return fail(call, {exposed.error()});
    add_lists(call.header_, call, call.plan_, *exposed);
  }
  const EncodedHeader header(call.header_);
  STAG_CHECK(header.bytes().size() <= call.plan_.header_size);
  in_flight_[call.xid] = &call;
  if (needs_memory) offer(call);
  call.state_ = OutgoingCall::State::Sent;
  call.transmitted = true;
  sink_.send_call(call, header.bytes());
}

void Requester::offer(const OutgoingCall& call) {
  std::size_t segments = 0;
  for_each_segment(call.header_, [&segments](const Segment&) { ++segments; });
  offered_.make_room(segments);
  for_each_segment(call.header_, [this](const Segment& segment) { ++offered_[segment.handle]; });
}

// Its owner has it again.
inline void Requester::retire(OutgoingCall& call) {
  call.state_ = OutgoingCall::State::Idle;
  if (!call.header_.has_chunks()) return;
  for_each_segment(call.header_, [this](const Segment& segment) {
    std::uint32_t* const count = offered_.find(segment.handle);
    if (--*count == 0) offered_.erase(count);
  });
}

void Requester::fail(OutgoingCall& call, const CallFailure& failure) {
  call.state_ = OutgoingCall::State::Idle;
  sink_.fail_call(call, failure);
}

bool Requester::may_invalidate(std::uint32_t xid, std::uint32_t handle) const {
  if (!settings_.may_be_invalidated) return false;
  const std::uint32_t* const all = offered_.find(handle);
  if (all == nullptr) return true;
  OutgoingCall* const* const call = in_flight_.find(xid);
  if (call == nullptr || *call == nullptr) return false;
  std::uint32_t own = 0;
  for_each_segment((*call)->header_,
                   [&own, handle](const Segment& segment) { own += segment.handle == handle; });
  return own == *all;
}

// The Call is no longer in flight: its credit is free, and the message's grant is in force. False
// when it was cancelled.
inline bool Requester::complete(OutgoingCall* call, std::uint32_t credits) {
  grant(credits);
  if (call == nullptr) return sink_.drop(Reason::RdmaReplyCancelled), false;
  retire(*call);
  return true;
}

void Requester::on_reply(const ParsedHeader& parsed, Bytes payload,
                         std::optional<std::uint32_t> invalidated) {
  const std::uint32_t xid = parsed.header.xid;
  OutgoingCall** const entry = in_flight_.find(xid);
  if (entry == nullptr) return sink_.drop(Reason::RdmaReplyUnmatched);
  ReplyArrival arrival;
  arrival.invalidated = invalidated;
  if (*entry != nullptr) {
    const Reason reason = read_reply((*entry)->header_, parsed.header, payload, arrival);
    // RFC 8166 4.5: the Call stays pending, until a good Reply, its time-out, or the connection's
    // end.
    if (reason != Reason::None) return sink_.drop(reason);
  }
  OutgoingCall* const call = *entry;
  in_flight_.erase(entry);
  if (complete(call, parsed.header.credits)) sink_.deliver_reply(*call, arrival);
  if (first_ != nullptr) send_ready();
}

void Requester::on_error(const ErrorMessage& error) {
  if (!awaits(error.xid)) return sink_.drop(Reason::RdmaErrorUnmatched);
  const Reason reason =
      error.code == ERR_VERS ? Reason::RdmaPeerRefusedVersion : Reason::RdmaPeerRefusedChunks;
  OutgoingCall* const call = *in_flight_.take(error.xid);
  if (complete(call, error.credits)) fail(*call, {reason, error.lowest, error.highest});
  send_ready();
}

// Null: it was cancelled. In this order Calls will ask for the one credit of the next connection,
// and an old one may be old because its server never answers it.
OutgoingCall* Requester::take_youngest() {
  std::uint32_t youngest = 0;
  in_flight_.for_each(
      [&youngest](std::uint32_t xid, const OutgoingCall*) { youngest = std::max(youngest, xid); });
  return *in_flight_.take(youngest);
}

void Requester::on_disconnect(Reason reason) {
  open_ = false;
  closed_ = reason;
  // Each is looked for anew: there may be no memory for a list of them.
  while (!in_flight_.empty()) {
    OutgoingCall* const call = take_youngest();
    if (call == nullptr) continue;
    retire(*call);
    fail(*call, {reason});
  }
  while (OutgoingCall* call = first_) {
    unlink(*call);
    fail(*call, {reason});
  }
}

}  // namespace stag::rpcrdma
