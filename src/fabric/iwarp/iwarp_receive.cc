// IwarpConnection's turns that read, and what the receiver makes of the bytes.
#include <array>

#include "fabric/iwarp/iwarp_connection.h"
#include "net/loop.h"

namespace stag::fabric {
namespace {

// Messages of these sizes may be kept as they lie in the read-ahead. It costs less to copy smaller
// ones; data of larger ones may be kept for good, and would keep all of the read-ahead with it.
constexpr std::size_t kKeptFrom = 1024;
constexpr std::size_t kKeptTo = 8 * 1024;

// Used only within one turn of a connection, hence one for a thread.
struct ReadAhead {
  Buffer usual;
  Buffer large;
  const Buffer* used = &usual;
};
ReadAhead& read_ahead_of_thread() {
  static thread_local ReadAhead mine;
  return mine;
}

// Another one when messages in the last are still in use.
MutableBytes read_ahead(std::size_t room) {
  ReadAhead& mine = read_ahead_of_thread();
  const bool usual = room <= kReadAhead;
  const std::size_t size = usual ? kReadAhead : kLargestReadAhead;
  Buffer& buffer = usual ? mine.usual : mine.large;
  MutableBytes memory = buffer.exclusive();
  if (memory.empty()) {
    buffer = Block::allocate(size).freeze(size);
    memory = buffer.exclusive();
  }
  mine.used = &buffer;
  return memory.first(room);
}

// What one system call receives, in order.
class ReadVector {
 public:
  ReadVector(std::span<const MutableBytes> targets, MutableBytes ahead) {
    for (const MutableBytes target : targets) add(target);
    add(ahead);
  }
  std::span<const iovec> pieces() const { return std::span(pieces_).first(count_); }

 private:
  void add(MutableBytes piece) { pieces_[count_++] = {piece.data(), piece.size()}; }

  std::array<iovec, iwarp::Receiver::kMostTargets + 1> pieces_;
  std::size_t count_ = 0;
};

std::size_t total(std::span<const MutableBytes> pieces) {
  std::size_t size = 0;
  for (const MutableBytes piece : pieces) size += piece.size();
  return size;
}

// Makes `message` one that can be kept, when it lies there.
void make_keepable(Buffer& message) {
  if (message.owned() || message.size() < kKeptFrom || message.size() > kKeptTo) return;
  const Buffer& whole = *read_ahead_of_thread().used;
  const auto at = reinterpret_cast<std::uintptr_t>(message.data());
  const auto begin = reinterpret_cast<std::uintptr_t>(whole.data());
  if (at < begin || at >= begin + whole.size()) return;
  message = whole.slice(at - begin, message.size());
}

}  // namespace

void IwarpConnection::on_readable() try {
  if (state_ != State::Open) return end_if_broken();
  busy_ = true;
  read_some();
  busy_ = false;
  // Answers first: waiting costs a system call.
  flush();
  if (state_ != State::Open) return end_if_broken();
  if (!peer_watched_ && !receiver_.at_boundary()) watch_peer();
  // Where there is more already, others come first who have used less of the loop.
  socket_.when_readable(static_cast<net::Reader&>(*this));
} catch (...) {
  end_by_exception();
}

[[gnu::always_inline]] inline void IwarpConnection::read_some() {
  std::size_t moved = 0;
  const bool crowded = socket_.crowded();
  const std::uint64_t before = receiver_.fpdus();
  std::size_t many = crowded ? many_in_crowd_ : kReadAhead;
  while (state_ == State::Open && moved < options_->turn_bytes) {
    const std::span<const MutableBytes> targets = receiver_.direct_targets();
    // Between two parts of bulk data a full read-ahead would take in more of it, only to copy it.
    const std::size_t room = !targets.empty() ? kBehindDirect : in_bulk_ ? kAfterDirect : many;
    const MutableBytes ahead = read_ahead(room);
    const std::size_t direct = total(targets);
    const net::Transfer transfer = targets.empty()
                                       ? socket_.try_read(iovec{ahead.data(), ahead.size()})
                                       : socket_.try_read(ReadVector(targets, ahead).pieces());
    if (transfer.reason != Reason::None) {
      on_stream_end(transfer.reason);
      return;
    }
    moved += transfer.bytes;
    if (!crowded) many = direct == 0 && transfer.bytes == many ? kLargestReadAhead : kReadAhead;
    if (transfer.bytes > 0) {
      heard_ = true;
      received_ += transfer.bytes;
      in_bulk_ = direct > 0;
    }
    const std::size_t placed = std::min(transfer.bytes, direct);
    if (placed > 0) receiver_.on_placed(placed);
    if (transfer.bytes > placed) receiver_.on_bytes(ahead.first(transfer.bytes - placed));
    // Before more is read: who has an answer that left early may have asked again already.
    report_written();
    if (crowded && moved > 0)
      many_in_crowd_ = read_ahead_in_crowd(moved, receiver_.fpdus() - before);
    if (transfer.drained || (crowded && direct == 0)) return;
  }
}

void IwarpConnection::on_stream_end(Reason reason) {
  const bool orderly = reason == Reason::ConnectionClosed && receiver_.at_boundary();
  end(orderly ? Reason::ConnectionClosed : Reason::ConnectionLost);
}

void IwarpConnection::on_send(Buffer message, std::optional<std::uint32_t> invalidated, bool) {
  if (state_ != State::Open) return;
  if (invalidated) {
    release_unwritten();
    drop_private_copy(*invalidated);
    if (state_ != State::Open) return;
  }
  make_keepable(message);
  events_->on_receive(std::move(message), invalidated);
}

void IwarpConnection::on_read_request(const iwarp::ReadRequest& request) {
  queue_.respond(request);
  schedule_flush();
}

void IwarpConnection::on_read_done(const iwarp::ReadRequest&) {
  if (state_ != State::Open) return;
  const OutstandingRead read = reads_.pop();
  table_.revoke(read.stag);
  tally_.see(table_.live());
  if (read.token != kNoToken) events_->on_done(read.token, Reason::None);
}

void IwarpConnection::on_terminate(const iwarp::Terminate& terminate) {
  trace(Reason::TerminateReceived, to_string(peer_), iwarp::to_string(terminate.error));
  end(Reason::PeerReportedError);
}

void IwarpConnection::on_violation(const iwarp::Violation& violation) {
  end_with(violation);
}

}  // namespace stag::fabric
