#include "rpcrdma/responder.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace stag::rpcrdma {
namespace {

constexpr std::uint32_t kSmallestStream = 8;  // XID and direction
// Segments up to this many are not worth counting, like a small stream. Each further one counts as
// what it may take in records when it is an item of its own.
constexpr std::size_t kFewSegments = 16;
constexpr std::uint64_t kSegmentCost = 256;
// Bytes of inline Replies that may wait to be sent before they count.
constexpr std::uint64_t kFewUnsent = 128 << 10;

std::uint64_t with_pad(std::uint64_t length) {
  return length + xdr_pad(static_cast<std::size_t>(length));
}

// Whether every item has its place in a stream with `stream` bytes besides them (RFC 8166 3.4.5).
// A chunk with and one without pad end at the same place.
bool positions_fit(std::span<const ArrivedItem> items, std::uint64_t stream) {
  std::uint64_t moved = 0;  // bytes of the stream in chunks so far
  std::uint64_t end = 0;    // of the item before
  for (const ArrivedItem& item : items) {
    if (item.position == 0) continue;
    if (item.position < end || item.position - moved > stream) return false;
    moved += with_pad(item.length);
    end = item.position + with_pad(item.length);
  }
  return true;
}

// The one handle of all the Call's chunks, if it is one.
class OneHandle {
 public:
  void add(const Segments& segments) {
    for (const Segment& segment : segments) {
      if (!handle_) handle_ = segment.handle;
      several_ |= *handle_ != segment.handle;
    }
  }
  void add(const Header& header) {
    for (const ReadChunk& chunk : header.read_list) add(chunk.segments);
    for (const WriteChunk& chunk : header.write_list) add(chunk.segments);
    if (header.reply_chunk) add(header.reply_chunk->segments);
  }
  std::optional<std::uint32_t> get() const { return several_ ? std::nullopt : handle_; }
  bool several() const { return several_; }

 private:
  std::optional<std::uint32_t> handle_;
  bool several_ = false;
};

std::size_t segments_in_all(const Header& header) {
  std::size_t segments = header.reply_chunk ? header.reply_chunk->segments.size() : 0;
  for (const ReadChunk& chunk : header.read_list) segments += chunk.segments.size();
  for (const WriteChunk& chunk : header.write_list) segments += chunk.segments.size();
  return segments;
}

bool mentions(const Header& header, std::uint32_t handle) {
  const auto in = [handle](const auto& chunk) {
    return std::any_of(chunk.segments.begin(), chunk.segments.end(),
                       [handle](const Segment& segment) { return segment.handle == handle; });
  };
  return std::any_of(header.read_list.begin(), header.read_list.end(), in) ||
         std::any_of(header.write_list.begin(), header.write_list.end(), in) ||
         (header.reply_chunk && in(*header.reply_chunk));
}

}  // namespace

Responder::Responder(const ResponderSettings& settings, Sink& sink)
    : settings_(settings), sink_(sink) {}

Responder::~Responder() {
  if (settings_.budget == nullptr) return;
  settings_.budget->stop_waiting();
  if (bytes_ != 0) settings_.budget->release(bytes_);
}

std::uint32_t Responder::grant() const {
  if (settings_.budget != nullptr && settings_.budget->budget().exhausted()) return 1;
  const auto waiting = static_cast<std::uint32_t>(waiting_.size());
  if (waiting != 0) return std::max(1u, in_service() > waiting ? in_service() - waiting : 0);
  return std::max(1u, settings_.credits);
}

void Responder::on_call(const ParsedHeader& parsed, Bytes payload) {
  if (!open_) return;
  if (!serves()) return sink_.drop(Reason::RdmaCallsNotServed);
  // There is a Receive for every credit ever granted and no more: beyond that the peer is broken,
  // while a Call beyond a grant that was lowered meanwhile is served (RFC 8166 3.3.1).
  // Replies that have not left hold memory: some may still be on their way when their peer has them
  // already, but a peer that never takes them is broken too.
  const std::size_t busy = calls_.size() - free_.size();
  if (in_service() >= settings_.credits || busy >= 2 * std::size_t{settings_.credits})
    return close(Reason::RdmaCreditsExceeded);
  if (in_service() >= last_grant_) ++overruns_;
  IncomingCall& call = free_call();
  if (!in_service_.insert(parsed.header.xid, &call))
    return sink_.drop(Reason::RdmaCallXidDuplicate);
  free_.pop_back();
  take_call(call, parsed.header, payload);
  if (const Reason reason = validate(call, payload); reason != Reason::None) {
    leave_service(call);
    release(call);
    return send_error(parsed.header.xid, kVersion, ERR_CHUNK, reason);
  }
  if (!call.items_.empty() && !call.long_call_ && !sink_.is_worth_reading(payload)) {
    call.items_.clear();
    return deliver(call, payload);
  }
  call.charge_ = charge_in_all(call);
  if (admit(call)) return begin(call, payload);
  call.state_ = State::Waiting;
  call.deferred_ = true;
  waiting_.push_back(&call);
  sink_.defer_call(call, payload);
}

// RFC 8166 4.5.2, as far as it can be seen without a look at the chunks' memory.
inline Reason Responder::validate(const IncomingCall& call, Bytes payload) const {
  const Header& header = call.header_;
  if (!settings_.serves_chunks && header.has_chunks()) return Reason::RdmaChunksNotServed;
  const std::uint64_t stream = call.long_call_ ? call.items_[0].length : payload.size();
  if (stream < kSmallestStream) return Reason::RdmaPayloadTooShort;
  if (!call.long_call_ && load_be<std::uint32_t>(payload.data()) != header.xid)
    return Reason::RdmaXidMismatch;
  if (!positions_fit({call.items_.data(), call.items_.size()}, stream))
    return Reason::InvalidReadPosition;
  if (call.charge_ > settings_.max_bytes) return Reason::RdmaChunkTooLarge;
  return Reason::None;
}

inline IncomingCall& Responder::free_call() {
  if (free_.empty()) {
    make_room_for_call();
    calls_.push_back(sink_.make_call());
    free_.push_back(calls_.back().get());
  }
  return *free_.back();
}

// A Call that becomes free, waits or has Reads to be posted takes no memory any more.
void Responder::make_room_for_call() {
  if (calls_.size() < calls_.capacity()) return;
  const std::size_t room = std::max(kKeptRecords, 2 * calls_.size());
  free_.reserve(room);
  waiting_.reserve(room);
  reading_.reserve(room);
  calls_.reserve(room);
}

inline void Responder::take_call(IncomingCall& call, const Header& header, Bytes payload) {
  call.state_ = State::Waiting;
  call.header_.xid = header.xid;
  call.charge_ = payload.size() > kSmallStream ? payload.size() : 0;
  if (header.has_chunks()) take_chunks(call, header, payload);
  call.long_call_ = header.proc == RDMA_NOMSG;
  call.deferred_ = false;
  call.reads_ = 0;
  call.failed_ = Reason::None;
}

void Responder::take_chunks(IncomingCall& call, const Header& offered, Bytes payload) {
  Header& header = call.header_;
  header = offered;
  for (const ReadChunk& chunk : header.read_list) call.charge_ += total_length(chunk.segments);
  // No Call is refused for the room that it has for results.
  const std::uint64_t most = settings_.max_bytes - std::min(settings_.max_bytes, call.charge_);
  call.charge_ += std::min(room_for_results(header, payload), most);
  std::sort(header.read_list.begin(), header.read_list.end(),
            [](const ReadChunk& a, const ReadChunk& b) { return a.position < b.position; });
  for (const ReadChunk& chunk : header.read_list)
    call.items_.push_back(
        {chunk.position, static_cast<std::uint32_t>(total_length(chunk.segments))});
  OneHandle one;
  one.add(header);
  if (one.get()) ++handles_[*one.get()];
  call.handle_ = one.get();
  call.several_handles_ = one.several();
  several_handles_ += call.several_handles_;
}

void Responder::release_chunks(IncomingCall& call) {
  if (call.handle_) {
    std::uint32_t* const count = handles_.find(*call.handle_);
    if (--*count == 0) handles_.erase(count);
  }
  several_handles_ -= call.several_handles_;
  call.handle_.reset();
  call.several_handles_ = false;
  // Memory that many chunks took is not kept.
  static_cast<void>(std::exchange(call.items_, {}));
  static_cast<void>(std::exchange(call.header_.read_list, {}));
  static_cast<void>(std::exchange(call.header_.write_list, {}));
  call.header_.reply_chunk.reset();
}

// Of the room that the Call has for results, what its Reply may take. With arguments that are still
// to be read that is not known.
std::uint64_t Responder::room_for_results(const Header& header, Bytes payload) const {
  std::uint64_t room = 0;
  for (const WriteChunk& chunk : header.write_list) room += total_length(chunk.segments);
  if (header.reply_chunk) room += total_length(header.reply_chunk->segments);
  const std::uint64_t usual = settings_.usual_result_bytes;
  if (room <= usual || !header.read_list.empty()) return room;
  return std::clamp(sink_.reply_max(payload), usual, room);
}

// With what the Call takes besides; no more than the limit, so that what just fits may be sent in
// pieces.
inline std::uint64_t Responder::charge_in_all(const IncomingCall& call) const {
  const bool has_chunks = call.header_.has_chunks();
  if (!has_chunks && unsent_ <= kFewUnsent) return call.charge_;
  std::uint64_t bytes = call.charge_;
  const std::size_t segments = has_chunks ? segments_in_all(call.header_) : 0;
  if (segments > kFewSegments) bytes += (segments - kFewSegments) * kSegmentCost;
  // The peer takes none of its Replies, and this one will wait with them.
  if (unsent_ > kFewUnsent) bytes += settings_.reply_threshold;
  return std::min(bytes, settings_.max_bytes);
}

// Reserves the bytes of the Call's chunks and of a large stream; no Call is larger than all of the
// limit (validate).
inline bool Responder::admit(IncomingCall& call) {
  const std::uint64_t bytes = call.charge_;
  if (bytes == 0) return true;
  const bool overtakes = !waiting_.empty() && waiting_.front() != &call;
  const bool fits = bytes <= settings_.max_bytes - bytes_;
  if (overtakes || !fits) return false;
  if (settings_.budget != nullptr && !settings_.budget->reserve(bytes)) return false;
  call.charged_ = bytes;
  bytes_ += bytes;
  return true;
}

inline void Responder::begin(IncomingCall& call, Bytes payload) {
  if (call.items_.empty()) return deliver(call, payload);
  if (!call.deferred_) {
    call.deferred_ = true;
    sink_.defer_call(call, payload);
  }
  call.state_ = State::Reading;
  if (!sink_.start_reads(call, {call.items_.data(), call.items_.size()}))
    return refuse(call, Reason::OutOfMemory);
  read_all(call);
}

void Responder::read_all(IncomingCall& call) {
  for (const ReadChunk& chunk : call.header_.read_list)
    for (const Segment& segment : chunk.segments) call.reads_ += segment.length != 0;
  if (call.reads_ == 0) return deliver(call, {});
  call.next_read_ = {.left = call.reads_};
  reading_.push_back(&call);
  post_reads();
}

// A posted Read takes memory of the fabric, on a device perhaps a block that is pinned: a peer that
// answers none must not have thousands of them. Calls take turns, so that none waits for all the
// segments of another.
void Responder::post_reads() {
  while (!reading_.empty() && posted_reads_ < settings_.max_reads) {
    IncomingCall& call = *reading_.front();
    reading_.erase(reading_.begin());
    read_segment(call);
    if (call.next_read_.left != 0) reading_.push_back(&call);
  }
}

// RFC 8166 3.4.5: segments are joined in list order without anything between them.
void Responder::read_segment(IncomingCall& call) {
  IncomingCall::NextRead& next = call.next_read_;
  const Segments& segments = call.header_.read_list[next.item].segments;
  const Segment& segment = segments[next.segment];
  if (segment.length != 0) {
    sink_.read(call, next.item, next.offset, segment);
    next.offset += segment.length;
    --next.left;
    ++posted_reads_;
  }
  if (++next.segment == segments.size()) next = {.item = next.item + 1, .left = next.left};
}

void Responder::on_read_done(IncomingCall& call, Reason outcome) {
  if (call.state_ != State::Reading) return;
  --posted_reads_;
  if (outcome != Reason::None && call.failed_ == Reason::None) {
    call.failed_ = outcome;
    // RFC 8166 4.5.3: a Remote Access Error is not recovered from.
    if (open_) close(Reason::RdmaReadFailed);
  }
  if (open_) post_reads();
  if (--call.reads_ != 0) return;
  if (call.failed_ != Reason::None || !open_) return end(call, Reason::RdmaReadFailed);
  if (call.long_call_) {
    const Bytes stream = sink_.long_call(call);
    STAG_CHECK(stream.size() >= kSmallestStream);
    // RFC 8166 4.5.2: what an inline Call was checked for when it came.
    if (load_be<std::uint32_t>(stream.data()) != call.header_.xid)
      return refuse(call, Reason::RdmaXidMismatch);
    if (load_be<std::uint32_t>(stream.data() + 4) != CALL)
      return refuse(call, Reason::RdmaDirectionBad);
  }
  deliver(call, {});
}

inline void Responder::deliver(IncomingCall& call, Bytes payload) {
  call.state_ = State::Delivered;
  CallArrival arrival;
  arrival.xid = call.header_.xid;
  arrival.payload = call.deferred_ ? Bytes{} : payload;
  arrival.deferred = call.deferred_;
  arrival.long_call = call.long_call_;
  arrival.items = {call.items_.data(), call.items_.size()};
  // The Reply repeats the Write list and the Reply chunk, never the Read list.
  const std::uint32_t header = header_size(call.header_.write_list, call.header_.reply_chunk);
  arrival.inline_reply_max =
      settings_.reply_threshold > header ? settings_.reply_threshold - header : 0;
  arrival.write_chunks = static_cast<std::uint32_t>(call.header_.write_list.size());
  if (call.header_.reply_chunk)
    arrival.reply_chunk_max = total_length(call.header_.reply_chunk->segments);
  sink_.deliver_call(call, arrival);
}

void Responder::on_reply(IncomingCall& call, const ReplyShape& shape) {
  if (call.state_ != State::Delivered) return;
  if (!open_) return end(call, Reason::None);
  const bool has_chunks = call.header_.has_chunks();
  ReplyPlan& plan = *plan_;
  const Reason planned = plan_reply(shape, call.header_.write_list, call.header_.reply_chunk,
                                    settings_.reply_threshold, plan);
  if (planned != Reason::None) return refuse(call, planned);
  call.state_ = State::Sending;
  call.unsent_ = plan.form == Form::Inline ? plan.stream_length : 0;
  unsent_ += call.unsent_;
  leave_service(call);
  last_grant_ = grant();
  const EncodedHeader header(call.header_.xid, last_grant_,
                             plan.form == Form::Long ? RDMA_NOMSG : RDMA_MSG, plan.write_list,
                             plan.reply_chunk);
  sink_.send_reply(call, header.bytes(), plan, handle_to_invalidate(call));
  // Memory that many chunks took is not kept.
  if (has_chunks) plan_.emplace();
}

// RFC 8797 4.1: a handle of this Call and of no other. Peers may keep a handle for several Calls,
// and say so by using several: then none is touched.
std::optional<std::uint32_t> Responder::handle_to_invalidate(const IncomingCall& call) const {
  if (!settings_.may_invalidate || !call.handle_ || is_shared(call, *call.handle_))
    return std::nullopt;
  return call.handle_;
}

// Whether another Call in progress has this handle of `call`.
bool Responder::is_shared(const IncomingCall& call, std::uint32_t handle) const {
  if (*handles_.find(handle) > 1) return true;
  if (several_handles_ == 0) return false;
  return std::any_of(calls_.begin(), calls_.end(), [&](const auto& other) {
    return other.get() != &call && other->several_handles_ && mentions(other->header_, handle);
  });
}

void Responder::on_no_reply(IncomingCall& call) {
  if (call.state_ != State::Delivered) return;
  end(call, Reason::None);
}

void Responder::on_failure(IncomingCall& call) noexcept {
  if (call.state_ != State::Delivered) return;
  leave_service(call);
  release(call);
}

void Responder::on_refusal(IncomingCall& call, Reason reason) {
  if (call.state_ != State::Delivered) return;
  if (!open_) return end(call, Reason::None);
  refuse(call, reason);
}

void Responder::on_sent(IncomingCall& call) {
  if (call.state_ != State::Sending) return;
  release(call);
  if (!waiting_.empty()) on_budget();
}

void Responder::on_fault(const HeaderFault& fault) {
  if (!serves()) return sink_.drop(fault.reason);
  const auto code = fault.answer == HeaderErrorReply::ErrVers ? ERR_VERS : ERR_CHUNK;
  send_error(fault.xid, fault.version, code, fault.reason);
}

void Responder::send_error(std::uint32_t xid, std::uint32_t version, rpc_rdma_errcode code,
                           Reason reason) {
  last_grant_ = grant();
  ErrorMessage error{.xid = xid, .version = version, .credits = last_grant_, .code = code};
  if (code == ERR_VERS) error.lowest = error.highest = kVersion;
  sink_.send_error(encode_error(error), reason);
}

void Responder::refuse(IncomingCall& call, Reason reason) {
  leave_service(call);
  const std::uint32_t xid = call.header_.xid;
  release(call);
  send_error(xid, kVersion, ERR_CHUNK, reason);
  sink_.forget_call(call, reason);
  on_budget();
}

// The end without any message.
void Responder::end(IncomingCall& call, Reason reason) {
  leave_service(call);
  release(call);
  sink_.forget_call(call, reason);
  on_budget();
}

inline void Responder::release(IncomingCall& call) {
  bytes_ -= call.charged_;
  if (settings_.budget != nullptr && call.charged_ != 0) settings_.budget->release(call.charged_);
  call.charged_ = 0;
  unsent_ -= std::exchange(call.unsent_, 0);
  call.state_ = State::Free;
  if (call.header_.has_chunks()) release_chunks(call);
  free_.push_back(&call);
}

void Responder::close(Reason reason) {
  open_ = false;
  sink_.close(reason);
}

void Responder::on_budget() {
  while (open_ && !waiting_.empty()) {
    IncomingCall& call = *waiting_.front();
    if (!admit(call)) return;
    waiting_.erase(waiting_.begin());
    begin(call, {});
  }
}

void Responder::on_quiet() {
  if (calls_.size() <= kKeptRecords || free_.size() != calls_.size()) return;
  calls_.resize(kKeptRecords);
  free_.clear();
  for (const std::unique_ptr<IncomingCall>& call : calls_) free_.push_back(call.get());
}

void Responder::on_disconnect(Reason reason) {
  open_ = false;
  waiting_.clear();
  reading_.clear();
  if (settings_.budget != nullptr) settings_.budget->stop_waiting();
  for (const std::unique_ptr<IncomingCall>& call : calls_) {
    if (call->state_ == State::Waiting || call->state_ == State::Reading) end(*call, reason);
    if (call->state_ == State::Sending) release(*call);
  }
}

}  // namespace stag::rpcrdma
