// IwarpConnection's turns that write.
#include <new>

#include "fabric/iwarp/gather.h"
#include "fabric/iwarp/iwarp_connection.h"
#include "net/loop.h"

namespace stag::fabric {
namespace {

// Once a batch holds this much no further message is begun: what is posted meanwhile may be more
// urgent. A peer that is sent less at a time receives less at a time.
constexpr std::size_t kBatchBytes = 1 << 20;
// Linux siw needs one kick; several only in case that one came too early as well.
constexpr int kMaxWakeupWrites = 4;
// Of the short Sends of a turn that goes on receiving so many, or so many bytes of them, leave
// together: the peer begins with them while we are at the rest. Fewer cost more system calls than
// they gain.
constexpr int kEarly = 20;
constexpr std::size_t kEarlyBytes = 64 * 1024;

}  // namespace

// A Send goes before everything but earlier Sends, its own flow and the message on its way: where
// none of these is, it needs no place in the queue.
inline bool IwarpConnection::may_begin_at_once(Flow flow) const {
  if (batch_.empty() && nothing_posted()) return may_transmit();
  return sender_.idle() && batch_.bytes_left() < kBatchBytes && !sender_.full(batch_) &&
         may_transmit() && queue_.is_next(flow);
}

inline void IwarpConnection::send_short(std::span<const Bytes> parts, std::size_t size,
                                        std::optional<std::uint32_t> invalidate, Token token) {
  if (active_ && wakeup_writes_ == 0) start_wakeup_writes();
  ++traffic_.sends_out;
  sender_.add_send(batch_, parts, size, invalidate);
  if (token != kNoToken) leaving_.push({batch_.appended(), token});
  if (!busy_) return schedule_flush();
  if (++held_back_ >= kEarly || batch_.bytes_left() >= kEarlyBytes) write_early();
}

void IwarpConnection::send(Rope message, std::optional<std::uint32_t> invalidate, Flow flow,
                           Token token) {
  if (state_ == State::Open && sender_.is_short(message.size()) && may_begin_at_once(flow)) {
    InlineVector<Bytes, 8> parts;
    for (const Buffer& piece : message.pieces()) parts.push_back(piece.bytes());
    return send_short({parts.data(), parts.size()}, message.size(), invalidate, token);
  }
  Operation operation;
  operation.kind = OperationKind::Send;
  operation.flow = flow;
  operation.token = token;
  operation.bytes = std::move(message);
  operation.invalidate = invalidate;
  post(std::move(operation));
}

// What memory has run out for halfway is no message that another may follow.
void IwarpConnection::begin_at_once(Operation& operation) try {
  begin(operation);
  fill();
} catch (const std::bad_alloc&) {
  filling_ = kNoToken;
  break_off();
  throw;
}

// What can be framed at once is copied once, to where it is framed.
void IwarpConnection::send_copy(std::span<const Bytes> parts,
                                std::optional<std::uint32_t> invalidate, Flow flow, Token token) {
  const std::size_t size = total_size(parts);
  const bool at_once = state_ == State::Open && sender_.is_short(size) && may_begin_at_once(flow);
  if (!at_once) return Connection::send_copy(parts, invalidate, flow, token);
  send_short(parts, size, invalidate, token);
}

void IwarpConnection::post(Operation&& operation) {
  if (state_ != State::Open) return post_late(operation.token);
  if (operation.kind == OperationKind::Send && may_begin_at_once(operation.flow)) {
    begin_at_once(operation);
  } else {
    queue_.post(std::move(operation));
  }
  schedule_flush();
}

// Only writes; the turn's end reports what has left, and what went wrong.
void IwarpConnection::write_early() {
  held_back_ = 0;
  if (!wait_writable_) static_cast<void>(write_batch(socket_, batch_));
}

void IwarpConnection::post_late(Token token) {
  if (token == kNoToken) return;
  late_.push_back(token);
  if (late_.size() > 1) return;
  loop_.post([anchor = anchor_] {
    if (anchor->connection == nullptr) return;
    IwarpConnection& self = *anchor->connection;
    for (Token late : std::exchange(self.late_, {}))
      if (self.events_ != nullptr) self.events_->on_done(late, self.reason_);
  });
}

void IwarpConnection::schedule_flush() {
  if (busy_ || wait_writable_ || std::exchange(flush_posted_, true)) return;
  loop_.post([anchor = anchor_] {
    if (anchor->connection == nullptr) return;
    anchor->connection->flush_posted_ = false;
    anchor->connection->flush();
  });
}

void IwarpConnection::flush() try {
  if (state_ >= State::Broken || wait_writable_ || busy_ || events_ == nullptr) return;
  busy_ = true;
  held_back_ = 0;
  const bool all = !may_transmit() || write_some();
  busy_ = false;
  if (state_ >= State::Broken) return;
  if (!peer_watched_) watch_peer();
  if (!all && !wait_writable_) schedule_flush();
  if (all && state_ == State::Closing && close_due_) end(reason_);
} catch (...) {
  end_by_exception();
}

// Whether nothing is left that could be sent now.
[[gnu::always_inline]] inline bool IwarpConnection::write_some() {
  std::size_t moved = 0;
  report_written();  // what left early
  while (state_ < State::Broken && moved < options_->turn_bytes) {
    if (!nothing_posted() && !fill_batch()) return true;
    if (batch_.empty()) return true;
    const net::Transfer transfer = write_batch(socket_, batch_);
    if (transfer.reason != Reason::None) {
      end(Reason::ConnectionLost);
      return true;
    }
    moved += transfer.bytes;
    report_written();
    if (batch_.empty() && nothing_posted()) return true;
    if (transfer.drained && state_ < State::Broken) {
      wait_writable_ = true;
      socket_.when_writable([this] {
        wait_writable_ = false;
        flush();
      });
      return false;
    }
  }
  return state_ >= State::Broken;
}

bool IwarpConnection::fill_batch() {
  while (batch_.bytes_left() < kBatchBytes && !sender_.full(batch_)) {
    if (sender_.idle()) {
      const bool may_read = state_ == State::Open && reads_.size() < parameters_.outbound_reads;
      std::optional<Outgoing> outgoing = queue_.next(may_read || parameters_.outbound_reads == 0);
      if (!outgoing) return true;
      if (!begin(*outgoing)) {
        if (state_ >= State::Broken) return false;
        continue;
      }
    }
    if (!fill()) return false;
  }
  return true;
}

// As much of the message on its way as the batch takes. False when the connection has ended.
bool IwarpConnection::fill() {
  const auto filled = sender_.fill(batch_);
  if (filling_response_) borrowed_until_ = batch_.appended();
  if (!filled) {
    end_with(filled.error());
    return false;
  }
  if (sender_.idle()) message_filled();
  return true;
}

// Whether a message has begun; else its operation has ended.
bool IwarpConnection::begin(Outgoing& outgoing) {
  if (!outgoing.response) return begin(outgoing.operation);
  filling_ = kNoToken;
  filling_response_ = true;
  traffic_.read_bytes_out += outgoing.response->size;
  sender_.begin_read_response(*outgoing.response);
  return true;
}

bool IwarpConnection::begin(Operation& operation) {
  filling_ = operation.token;
  filling_response_ = false;
  if (active_ && wakeup_writes_ == 0) start_wakeup_writes();
  switch (operation.kind) {
    case OperationKind::Send:
      ++traffic_.sends_out;
      sender_.begin_send(std::move(operation.bytes), operation.invalidate);
      return true;
    case OperationKind::Write:
      if (!operation.bytes.empty()) ++traffic_.writes_out;
      traffic_.write_bytes_out += operation.bytes.size();
      sender_.begin_write(operation.remote.handle, operation.remote.offset,
                          std::move(operation.bytes));
      return true;
    case OperationKind::Read:
      break;
  }
  return begin_read(operation);
}

bool IwarpConnection::begin_read(const Operation& operation) {
  const std::uint64_t offset = entropy_.next() >> 1;
  std::optional<std::uint32_t> stag;
  if (parameters_.outbound_reads > 0) stag = table_.register_read_sink(operation.sink, offset);
  if (!stag) {
    filling_ = kNoToken;
    const bool none = parameters_.outbound_reads == 0;
    if (operation.token != kNoToken)
      events_->on_done(operation.token,
                       none ? Reason::ReadsUnavailable : Reason::RegistrationsExhausted);
    return false;
  }
  tally_.add(table_.live());
  const iwarp::ReadRequest request{*stag, offset, static_cast<std::uint32_t>(operation.sink.size()),
                                   operation.remote.handle, operation.remote.offset};
  ++traffic_.reads_out;
  reads_.push({operation.token, *stag});
  filling_ = kNoToken;
  receiver_.expect_read_response(request);
  sender_.begin_read_request(request);
  return true;
}

void IwarpConnection::message_filled() {
  if (filling_response_) receiver_.read_response_sent();
  if (filling_ != kNoToken) leaving_.push({batch_.appended(), filling_});
  filling_ = kNoToken;
  filling_response_ = false;
}

void IwarpConnection::report_done() {
  do {
    events_->on_done(leaving_.pop().token, Reason::None);
  } while (state_ != State::Ended && any_written());
}

void IwarpConnection::start_wakeup_writes() {
  wakeup_write_timer_ = loop_.after(options_->wakeup_write_after, [this] { wakeup_write(); });
  wakeup_writes_ = 1;
}

void IwarpConnection::wakeup_write() try {
  if (heard_ || state_ != State::Open || wakeup_writes_ > kMaxWakeupWrites) return;
  queue_.post(Operation{OperationKind::Write, 0, kNoToken, {}, {}, {}, std::nullopt});
  schedule_flush();
  wakeup_write_timer_ =
      loop_.after(options_->wakeup_write_after * (1 << wakeup_writes_), [this] { wakeup_write(); });
  ++wakeup_writes_;
} catch (...) {
  end_by_exception();
}

}  // namespace stag::fabric
