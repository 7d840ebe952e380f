#include "rpc/tcp/stream.h"

#include <algorithm>
#include <array>
#include <utility>

namespace stag::rpc::tcp {
namespace {

// One per thread: connections hold no buffer while nothing of theirs is being read.
constexpr std::size_t kReadAhead = 64 << 10;
// Per turn and connection, so that one busy peer does not starve the others: bytes, and records
// after which no more is read. Small Calls cost by number, and a read has hundreds of them.
constexpr std::size_t kReadBudget = 1 << 20;
constexpr std::uint64_t kRecordBudget = 32;
// The same where others wait; and the read-ahead is then for about so many.
constexpr std::uint64_t kRecordsInCrowd = 8;
constexpr std::size_t kLeastReadAhead = 1 << 10;
constexpr std::size_t kPiecesPerWrite = 64;
// A message up to this long is sent in one piece.
constexpr std::size_t kOnePiece = 8 << 10;
constexpr Duration kFinishLimit = std::chrono::seconds(1);

MutableBytes read_ahead() {
  static thread_local std::array<std::byte, kReadAhead> buffer;
  return buffer;
}

}  // namespace

RecordStream::RecordStream(std::unique_ptr<Wire> wire, const StreamLimits& limits,
                           std::shared_ptr<Account> account)
    : wire_(std::move(wire)),
      loop_(wire_->loop()),
      limits_(limits),
      account_(std::move(account)),
      reader_(limits.records) {}

RecordStream::~RecordStream() {
  account_->give(counted_ + paid_ + unread_.size());
}

void RecordStream::start(Events& events) {
  events_ = &events;
  read_later();
}

// Around whatever may run out of memory, wherever it is called from: the connection ends then, in
// whatever state it is.
template <class F>
void RecordStream::guarded(F&& body) noexcept {
  try {
    body();
  } catch (...) {
    close(Reason::OutOfMemory);
  }
}

RecordStream::Ticket RecordStream::send(Rope message, Turn turn, Told told) {
  STAG_CHECK(message.size() < oncrpc::kLastFragment);
  if (output_ended_ || closed_) {
    if (told == Told::Yes) tell(message, false);
    return 0;
  }
  guarded([&] { enqueue(std::move(message), turn, told); });
  return closed_ ? 0 : last_ticket_;
}

void RecordStream::tell(const Rope& message, bool sent) noexcept {
  if (events_ != nullptr) events_->on_left(message, sent);
}

void RecordStream::enqueue(Rope&& message, Turn turn, Told told) {
  Outgoing record;
  record.told = told;
  record.mark = oncrpc::record_mark(static_cast<std::uint32_t>(message.size()));
  // Many short ones go by one system call, which takes a limited number of pieces.
  if (message.pieces().size() > 1 && message.size() <= kOnePiece)
    record.message = Rope(message.flatten());
  else
    record.message = std::move(message);
  record.ticket = ++last_ticket_;
  const std::size_t size = record.size();
  if (turn == Turn::Ahead && ahead_ + size <= kMostAhead)
    put_ahead(std::move(record));
  else
    queue_.push_back(std::move(record));
  if (queued_ == 0) ++debts_;
  queued_ += size;
  if (waiting_writable_) {
    count_held();
  } else {
    counted_ += size;
    account_->take(size);
    // While reading, the flush at the end of the batch takes it along.
    if (!reading_) flush_later();
  }
  if (congested()) was_congested_ = true;
  held_back_ |= refrains();
  watch_for_stall();
}

void RecordStream::put_ahead(Outgoing&& record) {
  std::size_t place = first_;
  if (place < queue_.size() && queue_[place].sent > 0) ++place;
  while (place < queue_.size() && queue_[place].ahead) ++place;
  const std::size_t overtaking = place < queue_.size() ? record.size() : 0;
  record.ahead = true;
  queue_.insert(queue_.begin() + static_cast<std::ptrdiff_t>(place), std::move(record));
  ahead_ += overtaking;
}

// What a record costs besides its bytes is counted once the peer has not taken it at once: for all
// others that were two turns at a lock that the loops share, for nothing.
void RecordStream::count_held() {
  const std::size_t before = std::exchange(counted_, held());
  if (counted_ > before) account_->take(counted_ - before);
  if (counted_ < before) account_->give(before - counted_);
}

void RecordStream::flush_later() {
  if (std::exchange(flush_scheduled_, true)) return;
  loop_.post([self = weak_from_this()] {
    if (const auto stream = self.lock()) stream->flush();
  });
}

void RecordStream::abandon(Ticket ticket) {
  guarded([&] { take_out(ticket); });
}

void RecordStream::take_out(Ticket ticket) {
  for (std::size_t i = first_; i < queue_.size(); ++i) {
    Outgoing& record = queue_[i];
    if (record.ticket != ticket) continue;
    if (record.sent > 0) {
      // Its length is on the wire; the rest leaves from memory of our own.
      Block copy = Block::allocate(record.message.size());
      record.message.copy_to(copy.bytes());
      const std::size_t size = record.message.size();
      record.message = Rope(std::move(copy).freeze(size));
    } else {
      queued_ -= record.size();
      queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(i));
      count_held();
      // This may have been what reading waited for.
      if (was_congested_) flush_later();
    }
    return;
  }
}

void RecordStream::pause() {
  paused_ = Paused::Yes;
  held_back_ = true;
}

void RecordStream::pause_unless_awaiting() {
  paused_ = Paused::UnlessAwaiting;
  held_back_ |= refrains();
  read_later();
}

void RecordStream::resume() {
  if (std::exchange(paused_, Paused::No) == Paused::No) return;
  read_later();
}

void RecordStream::on_reply_awaited() noexcept {
  guarded([this] { read_later(); });
}

void RecordStream::read_later() {
  if (waiting_readable_ || reading_ || !may_read()) return;
  waiting_readable_ = true;
  loop_.post([self = weak_from_this()] {
    const auto stream = self.lock();
    if (stream == nullptr) return;
    stream->waiting_readable_ = false;
    stream->read();
  });
}

void RecordStream::await_readable() {
  held_back_ |= refrains();
  if (!may_read() || std::exchange(waiting_readable_, true)) return;
  wire_->when_readable([this] {
    waiting_readable_ = false;
    read();
  });
}

// Where nothing may be read it asks to be told of nothing: resume(), flush() and a caller that
// awaits a Reply begin anew.
void RecordStream::read() {
  if (reading_) return;
  held_back_ |= refrains();
  if (may_read()) guarded([this] { read_some(); });
}

void RecordStream::read_some() {
  if (finishing_) return drop_input();
  if (std::exchange(held_back_, false)) {
    timed_record_ = 0;
    ++debts_;
  }
  reading_ = true;
  deliver_unread();
  bool drained = false;
  std::size_t budget = kReadBudget;
  const bool crowded = wire_->crowded();
  const std::uint64_t last = records_ + (crowded ? kRecordsInCrowd : kRecordBudget);
  while (may_read() && !drained && budget > 0 && records_ < last) {
    budget -= std::min(budget, read_once(crowded ? few_ahead_ : kReadAhead, drained));
    starved_ = !pay();
  }
  reading_ = false;
  flush();
  watch_for_stall();
  watch_record();
  // Where there is more already, others come first who have used less of the loop.
  await_readable();
}

// Reads what the socket has into the record in progress and, behind it, the read-ahead buffer.
std::size_t RecordStream::read_once(std::size_t most_ahead, bool& drained) {
  const MutableBytes room = reader_.room();
  const MutableBytes ahead = read_ahead().first(most_ahead);
  const std::uint64_t before = records_;
  std::array<iovec, 2> pieces{iovec{room.data(), room.size()}, iovec{ahead.data(), ahead.size()}};
  const auto used = std::span(pieces).subspan(room.empty() ? 1 : 0);
  const net::Transfer transfer = wire_->try_read(used);
  drained = transfer.drained || transfer.bytes == 0;
  if (transfer.reason != Reason::None) {
    close(transfer.reason);
    return transfer.bytes;
  }
  received_ += transfer.bytes;
  const std::size_t placed = std::min(transfer.bytes, room.size());
  if (placed > 0) {
    reader_.placed(placed);
    hand_over();
  }
  deliver(Bytes(ahead).first(transfer.bytes - placed));
  // Of small records fewer bytes are as many.
  if (records_ - before > kRecordsInCrowd)
    few_ahead_ = std::max(most_ahead * kRecordsInCrowd / (records_ - before), kLeastReadAhead);
  else if (!drained)
    few_ahead_ = std::min(2 * few_ahead_, kReadAhead);
  return transfer.bytes;
}

// Yields how many of the bytes it has taken: all, unless the owner does not want more.
std::size_t RecordStream::take_records(Bytes bytes) {
  std::size_t taken = 0;
  while (taken < bytes.size() && !paused() && !closed_) {
    const Result<std::size_t, Reason> used = reader_.feed(bytes.subspan(taken));
    if (!used) {
      close(used.error());
      break;
    }
    taken += *used;
    hand_over();
    // No system call takes more, and a peer that does not read them is to be known before the next
    // one.
    if (2 * waiting_records() >= kPiecesPerWrite) write_queue();
  }
  return taken;
}

void RecordStream::deliver(Bytes bytes) {
  const Bytes rest = bytes.subspan(take_records(bytes));
  if (closed_ || rest.empty()) return;
  unread_.assign(rest.begin(), rest.end());
  account_->take(unread_.size());
}

// What is left stays where close(), at any point of it, finds it and gives it back.
void RecordStream::deliver_unread() {
  if (unread_.empty()) return;
  unread_at_ += take_records(Bytes(unread_).subspan(unread_at_));
  if (closed_) return;
  if (unread_at_ == unread_.size()) {
    unread_at_ = 0;
    account_->give(std::exchange(unread_, {}).size());
  }
  starved_ = !pay();
}

void RecordStream::hand_over() {
  if (!reader_.complete()) return;
  ++records_;
  // What came with the read-ahead is there, whether there was room for it or not.
  account_->take(reader_.announced() - std::exchange(paid_, 0));
  events_->on_record(reader_.take());
}

// Each fragment is paid for when it is announced, so that none stops in its middle for want of
// room. False when the account has none.
bool RecordStream::pay() {
  if (closed_ || !reader_.midway() || reader_.announced() <= paid_) return true;
  if (!account_->try_take(reader_.announced() - paid_)) {
    // A connection that holds a part already and waits for more may be in its own way: its time
    // goes on.
    held_back_ |= reader_.fragments() <= 1;
    return false;
  }
  paid_ = reader_.announced();
  return true;
}

void RecordStream::on_room_in_account() {
  if (!starved_) return;
  starved_ = !pay();
  read_later();
}

void RecordStream::flush() {
  flush_scheduled_ = false;
  guarded([this] { write_queue(); });
  // What the peer has not taken may have been all that was in its way.
  if (!closed_) guarded([this] { on_room_in_account(); });
  if (closed_ || congested() || !std::exchange(was_congested_, false)) return;
  if (events_ != nullptr) events_->on_room();
  read_later();
}

void RecordStream::write_queue() {
  while (!closed_ && !waiting_writable_ && queued_ > 0) {
    std::array<iovec, kPiecesPerWrite> pieces;
    const std::size_t count = gather(pieces);
    const net::Transfer transfer = wire_->try_write(std::span(pieces).first(count));
    if (transfer.reason != Reason::None) return close(transfer.reason);
    written_ += transfer.bytes;
    consume(transfer.bytes);
    if (queued_ == 0 || !transfer.drained) continue;
    waiting_writable_ = true;
    wire_->when_writable([this] {
      waiting_writable_ = false;
      flush();
    });
  }
  if (!closed_) count_held();
  const bool all_sent = finishing_ && !closed_ && queued_ == 0;
  if (all_sent && !std::exchange(output_ended_, true)) wire_->end_output();
}

std::size_t RecordStream::gather(std::span<iovec> pieces) const {
  std::size_t count = 0;
  const auto add = [&](Bytes bytes, std::size_t& skip) {
    const std::size_t skipped = std::min(skip, bytes.size());
    skip -= skipped;
    bytes = bytes.subspan(skipped);
    if (!bytes.empty() && count < pieces.size())
      pieces[count++] = {const_cast<std::byte*>(bytes.data()), bytes.size()};
  };
  for (std::size_t i = first_; i < queue_.size() && count < pieces.size(); ++i) {
    std::size_t skip = queue_[i].sent;
    add(queue_[i].mark, skip);
    for (const Buffer& piece : queue_[i].message.pieces()) add(piece.bytes(), skip);
  }
  return count;
}

void RecordStream::consume(std::size_t bytes) {
  queued_ -= bytes;
  while (bytes > 0) {
    Outgoing& record = queue_[first_];
    const std::size_t part = std::min(bytes, record.size() - record.sent);
    record.sent += part;
    bytes -= part;
    if (record.sent < record.size()) break;
    if (record.told == Told::Yes) [[unlikely]]
      tell(record.message, true);
    record.message = Rope();
    if (!record.ahead) ahead_ = 0;
    ++first_;
  }
  if (first_ == queue_.size()) {
    queue_.clear();
    first_ = 0;
  } else if (first_ >= 256) {
    queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
}

RecordStream::Progress RecordStream::progress() const {
  if (queued_ > 0) return {Debt::Replies, debts_, acknowledged_bytes()};
  // A reader that we hold back ourselves is not to blame.
  if (starved_ || account_->starving()) return {Debt::Room, debts_, account_->grants()};
  if (reader_.midway() && !held_back_) return {Debt::Record, debts_, received_};
  // What the wire has taken is not with the peer yet.
  if (wire_->unacknowledged() > 0) return {Debt::Replies, debts_, acknowledged_bytes()};
  return {};
}

bool RecordStream::stalled() const {
  if (at_watch_.owed == Debt::None) return false;
  // What the wire had then is the debt of before, whatever has been written since.
  if (at_watch_.owed == Debt::Replies && written_at_watch_ > at_watch_.bytes)
    return acknowledged_bytes() == at_watch_.bytes;
  return progress() == at_watch_;
}

// One timer while anything is under way; idle connections have none.
void RecordStream::watch_for_stall() {
  if (limits_.stall == Duration::zero() || closed_ || stall_watched_) return;
  const bool under_way = queued_ > 0 || reader_.midway() || account_->starving();
  if (!under_way && wire_->unacknowledged() == 0) return;
  stall_watched_ = true;
  at_watch_ = progress();
  written_at_watch_ = written_;
  stall_timer_ = loop_.after(limits_.stall, [this] {
    stall_watched_ = false;
    if (stalled())
      return close(at_watch_.owed == Debt::Room ? Reason::RpcNoRoom : Reason::RpcPeerTooSlow);
    guarded([this] { watch_for_stall(); });
  });
}

// The deadline of the record in progress, if it has none yet.
void RecordStream::watch_record() {
  if (limits_.whole_record == Duration::zero() || closed_ || !reader_.midway()) return;
  if (std::exchange(timed_record_, records_) != records_)
    record_due_ = loop_.now() + limits_.whole_record;
  if (!record_watched_) await_deadline();
}

// One timer for record after record: it is late for most of them and looks again.
void RecordStream::await_deadline() {
  record_watched_ = true;
  record_timer_ = loop_.after(record_due_ - loop_.now(), [this] {
    record_watched_ = false;
    // Held back, the record gets its time again when reading goes on: see read().
    if (!reader_.midway() || timed_record_ != records_ || held_back_) return;
    if (loop_.now() >= record_due_) return close(Reason::RpcPeerTooSlow);
    guarded([this] { await_deadline(); });
  });
}

void RecordStream::finish() noexcept {
  if (closed_ || std::exchange(finishing_, true)) return;
  record_timer_.cancel();
  stall_watched_ = true;  // by this limit
  guarded([this] {
    stall_timer_ = loop_.after(kFinishLimit, [this] { close(Reason::Shutdown); });
    flush_later();
    read_later();
  });
}

// What comes now is not served; its sender finds out when the connection has ended.
void RecordStream::drop_input() {
  const MutableBytes nowhere = read_ahead();
  const iovec piece{nowhere.data(), nowhere.size()};
  if (wire_->try_read(std::span(&piece, 1)).reason != Reason::None) return close(Reason::Shutdown);
  await_readable();
}

void RecordStream::close(Reason reason) noexcept {
  if (std::exchange(closed_, true)) return;
  stall_timer_.cancel();
  record_timer_.cancel();
  wire_->close();
  for (std::size_t i = first_; i < queue_.size(); ++i)
    if (queue_[i].told == Told::Yes) tell(queue_[i].message, false);
  queue_.clear();
  account_->give(counted_ + paid_ + unread_.size());
  unread_.clear();
  first_ = queued_ = counted_ = paid_ = 0;
  loop_.post([self = shared_from_this(), reason] {
    if (self->events_ != nullptr) self->events_->on_stream_closed(reason);
  });
}

}  // namespace stag::rpc::tcp
