#include "rpcrdma/responder.h"

#include <algorithm>

#include "base/check.h"

namespace stag::rpcrdma {
namespace {

constexpr std::uint32_t kSmallestStream = 8;  // XID and direction

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
    : settings_(settings), sink_(sink) {
  serve(settings.credits);
}

Responder::~Responder() {
  if (settings_.budget == nullptr) return;
  settings_.budget->stop_waiting();
  if (bytes_ != 0) settings_.budget->release(bytes_);
}

void Responder::serve(std::uint32_t credits) {
  settings_.credits = credits;
  free_.reserve(credits);
  waiting_.reserve(credits);
}

Responder::Slot* Responder::find(IncomingCall call) {
  if (call.index >= slots_.size()) return nullptr;
  Slot& slot = *slots_[call.index];
  const bool current = slot.generation == call.generation && slot.state != State::Free;
  return current ? &slot : nullptr;
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
  const std::size_t busy = slots_.size() - free_.size();
  if (in_service() >= settings_.credits || busy >= 2 * std::size_t{settings_.credits})
    return close(Reason::RdmaCreditsExceeded);
  if (in_service() >= last_grant_) ++overruns_;
  if (in_service_.contains(parsed.header.xid)) return sink_.drop(Reason::RdmaCallXidDuplicate);
  Slot& slot = take_slot(parsed.header, payload.size());
  if (const Reason reason = unfit(slot, payload); reason != Reason::None) {
    leave_service(slot);
    release(slot);
    return send_error(parsed.header.xid, kVersion, ERR_CHUNK, reason);
  }
  if (!slot.items.empty() && !slot.long_call && !sink_.is_worth_reading(payload)) {
    slot.items.clear();
    return deliver(slot, payload);
  }
  if (admit(slot)) return begin(slot, payload);
  slot.state = State::Waiting;
  slot.held = true;
  waiting_.push_back(slot.index);
  sink_.hold_call(id_of(slot), payload);
}

// RFC 8166 4.5.2, as far as it can be seen without a look at the chunks' memory.
Reason Responder::unfit(const Slot& slot, Bytes payload) const {
  const Header& header = slot.header;
  if (!settings_.serves_chunks && header.has_chunks()) return Reason::RdmaChunksNotServed;
  const std::uint64_t stream = slot.long_call ? slot.items[0].length : payload.size();
  if (stream < kSmallestStream) return Reason::RdmaPayloadTooShort;
  if (!slot.long_call && load_be<std::uint32_t>(payload.data()) != header.xid)
    return Reason::RdmaXidMismatch;
  if (!positions_fit({slot.items.data(), slot.items.size()}, stream))
    return Reason::RdmaPositionBad;
  if (slot.charge > settings_.max_bytes) return Reason::RdmaChunkTooLarge;
  return Reason::None;
}

Responder::Slot& Responder::take_slot(const Header& header, std::size_t inline_bytes) {
  if (free_.empty()) {
    const auto index = static_cast<std::uint32_t>(slots_.size());
    free_.reserve(slots_.size() + 1);  // A slot that becomes free takes no memory.
    slots_.push_back(std::make_unique<Slot>());
    slots_.back()->index = index;
    free_.push_back(index);
  }
  Slot& slot = *slots_[free_.back()];
  free_.pop_back();
  slot.state = State::Waiting;
  slot.header.xid = header.xid;
  slot.charge = inline_bytes > kSmallStream ? inline_bytes : 0;
  if (header.has_chunks()) take_chunks(slot, header);
  slot.long_call = header.proc == RDMA_NOMSG;
  slot.held = false;
  slot.reads = 0;
  slot.failed = Reason::None;
  in_service_[header.xid] = slot.index;
  return slot;
}

void Responder::take_chunks(Slot& slot, const Header& offered) {
  Header& header = slot.header;
  header = offered;
  slot.charge += charge(header);
  std::sort(header.read_list.begin(), header.read_list.end(),
            [](const ReadChunk& a, const ReadChunk& b) { return a.position < b.position; });
  for (const ReadChunk& chunk : header.read_list)
    slot.items.push_back(
        {chunk.position, static_cast<std::uint32_t>(total_length(chunk.segments))});
  OneHandle one;
  one.add(header);
  if (one.get()) ++handles_[*one.get()];
  slot.handle = one.get();
  slot.several_handles = one.several();
  several_handles_ += slot.several_handles;
}

void Responder::release_chunks(Slot& slot) {
  if (slot.handle && --handles_[*slot.handle] == 0) handles_.erase(*slot.handle);
  several_handles_ -= slot.several_handles;
  slot.handle.reset();
  slot.several_handles = false;
  slot.items.clear();
  slot.header.clear_chunks();
}

// Of the chunks.
std::uint64_t Responder::charge(const Header& header) const {
  std::uint64_t bytes = 0;
  for (const ReadChunk& chunk : header.read_list) bytes += total_length(chunk.segments);
  const auto room = [this](const WriteChunk& chunk) {
    return std::min<std::uint64_t>(total_length(chunk.segments), settings_.max_result_bytes);
  };
  for (const WriteChunk& chunk : header.write_list) bytes += room(chunk);
  if (header.reply_chunk) bytes += room(*header.reply_chunk);
  return bytes;
}

// Reserves the bytes of the Call's chunks and of a large stream; no Call is larger than all of the
// limit (unfit).
bool Responder::admit(Slot& slot) {
  const std::uint64_t bytes = slot.charge;
  if (bytes == 0) return true;
  const bool overtakes = !waiting_.empty() && waiting_.front() != slot.index;
  const bool fits = bytes <= settings_.max_bytes - bytes_;
  if (overtakes || !fits) return false;
  if (settings_.budget != nullptr && !settings_.budget->reserve(bytes)) return false;
  slot.charged = bytes;
  bytes_ += bytes;
  return true;
}

void Responder::begin(Slot& slot, Bytes payload) {
  if (slot.items.empty()) return deliver(slot, payload);
  if (!slot.held) {
    slot.held = true;
    sink_.hold_call(id_of(slot), payload);
  }
  slot.state = State::Reading;
  if (!sink_.start_reads(id_of(slot), {slot.items.data(), slot.items.size()}))
    return refuse(slot, Reason::OutOfMemory);
  read_all(slot);
}

// RFC 8166 3.4.5: segments are joined in list order without anything between them.
void Responder::read_all(Slot& slot) {
  for (const ReadChunk& chunk : slot.header.read_list)
    for (const Segment& segment : chunk.segments) slot.reads += segment.length != 0;
  if (slot.reads == 0) return deliver(slot, {});
  for (std::uint32_t item = 0; item < slot.items.size(); ++item) {
    std::uint32_t offset = 0;
    for (const Segment& segment : slot.header.read_list[item].segments) {
      if (segment.length == 0) continue;
      sink_.read(id_of(slot), item, offset, segment);
      offset += segment.length;
    }
  }
}

void Responder::on_read_done(IncomingCall call, Reason outcome) {
  Slot* slot = find(call);
  if (slot == nullptr || slot->state != State::Reading) return;
  if (outcome != Reason::None && slot->failed == Reason::None) {
    slot->failed = outcome;
    // RFC 8166 4.5.3: a Remote Access Error is not recovered from.
    if (open_) close(Reason::RdmaReadFailed);
  }
  if (--slot->reads != 0) return;
  if (slot->failed != Reason::None || !open_) return end(*slot, Reason::RdmaReadFailed);
  if (slot->long_call) {
    const Bytes stream = sink_.long_call(call);
    STAG_CHECK(stream.size() >= kSmallestStream);
    // RFC 8166 4.5.2: what an inline Call was checked for when it came.
    if (load_be<std::uint32_t>(stream.data()) != slot->header.xid)
      return refuse(*slot, Reason::RdmaXidMismatch);
    if (load_be<std::uint32_t>(stream.data() + 4) != CALL)
      return refuse(*slot, Reason::RdmaDirectionBad);
  }
  deliver(*slot, {});
}

void Responder::deliver(Slot& slot, Bytes payload) {
  slot.state = State::Delivered;
  CallArrival arrival;
  arrival.xid = slot.header.xid;
  arrival.payload = slot.held ? Bytes{} : payload;
  arrival.held = slot.held;
  arrival.long_call = slot.long_call;
  arrival.items = {slot.items.data(), slot.items.size()};
  // The Reply repeats the Write list and the Reply chunk, never the Read list.
  const std::uint32_t header = header_size(slot.header.write_list, slot.header.reply_chunk);
  arrival.inline_reply_max =
      settings_.reply_threshold > header ? settings_.reply_threshold - header : 0;
  if (slot.header.reply_chunk)
    arrival.reply_chunk_max = total_length(slot.header.reply_chunk->segments);
  sink_.deliver_call(id_of(slot), arrival);
}

void Responder::on_reply(IncomingCall call, const ReplyShape& shape) {
  Slot* slot = find(call);
  if (slot == nullptr || slot->state != State::Delivered) return;
  if (!open_) return end(*slot, Reason::None);
  const Result<ReplyPlan, Reason> plan = plan_reply(
      shape, slot->header.write_list, slot->header.reply_chunk, settings_.reply_threshold);
  if (!plan) return refuse(*slot, plan.error());
  for (const Placement& placement : plan->writes) sink_.write(call, placement);
  slot->state = State::Sending;
  leave_service(*slot);
  last_grant_ = grant();
  const EncodedHeader header(slot->header.xid, last_grant_,
                             plan->form == Form::Long ? RDMA_NOMSG : RDMA_MSG, plan->write_list,
                             plan->reply_chunk);
  sink_.send_reply(call, header.bytes(), *plan, handle_to_invalidate(*slot));
}

// RFC 8797 4.1: a handle of this Call and of no other. Peers may keep a handle for several Calls,
// and say so by using several: then none is touched.
std::optional<std::uint32_t> Responder::handle_to_invalidate(const Slot& slot) const {
  if (!settings_.may_invalidate || !slot.handle || is_shared(slot, *slot.handle))
    return std::nullopt;
  return slot.handle;
}

// Whether another Call in progress has this handle of `slot`.
bool Responder::is_shared(const Slot& slot, std::uint32_t handle) const {
  if (*handles_.find(handle) > 1) return true;
  if (several_handles_ == 0) return false;
  return std::any_of(slots_.begin(), slots_.end(), [&](const std::unique_ptr<Slot>& other) {
    return other.get() != &slot && other->several_handles && mentions(other->header, handle);
  });
}

void Responder::on_no_reply(IncomingCall call) {
  Slot* slot = find(call);
  if (slot == nullptr || slot->state != State::Delivered) return;
  end(*slot, Reason::None);
}

void Responder::on_refusal(IncomingCall call, Reason reason) {
  Slot* slot = find(call);
  if (slot == nullptr || slot->state != State::Delivered) return;
  if (!open_) return end(*slot, Reason::None);
  refuse(*slot, reason);
}

void Responder::on_sent(IncomingCall call) {
  Slot* slot = find(call);
  if (slot == nullptr || slot->state != State::Sending) return;
  release(*slot);
  on_budget();
}

void Responder::on_fault(const HeaderFault& fault) {
  if (!serves()) return sink_.drop(fault.reason);
  const auto code = fault.answer == Answer::ErrVers ? ERR_VERS : ERR_CHUNK;
  send_error(fault.xid, fault.version, code, fault.reason);
}

void Responder::send_error(std::uint32_t xid, std::uint32_t version, rpc_rdma_errcode code,
                           Reason reason) {
  last_grant_ = grant();
  ErrorMessage error{.xid = xid, .version = version, .credits = last_grant_, .code = code};
  if (code == ERR_VERS) error.lowest = error.highest = kVersion;
  sink_.send_error(encode_error(error), reason);
}

void Responder::refuse(Slot& slot, Reason reason) {
  leave_service(slot);
  const std::uint32_t xid = slot.header.xid;
  const IncomingCall call = id_of(slot);
  release(slot);
  send_error(xid, kVersion, ERR_CHUNK, reason);
  sink_.forget_call(call, reason);
  on_budget();
}

// The end without any message.
void Responder::end(Slot& slot, Reason reason) {
  leave_service(slot);
  const IncomingCall call = id_of(slot);
  release(slot);
  sink_.forget_call(call, reason);
  on_budget();
}

void Responder::release(Slot& slot) {
  bytes_ -= slot.charged;
  if (settings_.budget != nullptr && slot.charged != 0) settings_.budget->release(slot.charged);
  slot.charged = 0;
  slot.state = State::Free;
  ++slot.generation;
  if (slot.header.has_chunks()) release_chunks(slot);
  free_.push_back(slot.index);
}

void Responder::close(Reason reason) {
  open_ = false;
  sink_.close(reason);
}

void Responder::on_budget() {
  while (open_ && !waiting_.empty()) {
    Slot& slot = *slots_[waiting_.front()];
    if (!admit(slot)) return;
    waiting_.erase(waiting_.begin());
    begin(slot, {});
  }
}

void Responder::on_disconnect(Reason reason) {
  open_ = false;
  waiting_.clear();
  if (settings_.budget != nullptr) settings_.budget->stop_waiting();
  for (const std::unique_ptr<Slot>& slot : slots_) {
    if (slot->state == State::Waiting || slot->state == State::Reading) end(*slot, reason);
    if (slot->state == State::Sending) release(*slot);
  }
}

}  // namespace stag::rpcrdma
