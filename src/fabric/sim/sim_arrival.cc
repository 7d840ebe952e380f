// What a SimConnection does with what arrives.
#include <algorithm>

#include "fabric/sim/sim_connection.h"

namespace stag::fabric {

void SimConnection::arrive(Packet packet) {
  // A connection keeps the order of what it carries, whatever delay each part drew.
  if (!arriving_.empty()) packet.due = std::max(packet.due, arriving_.back().due);
  arriving_.push_back(std::move(packet));
  schedule_arrival();
}

// While all is acknowledged nothing of this side is on its way: then only what comes is progress.
std::uint64_t SimConnection::progress_mark() const {
  return arrivals_ + (outbox_.sending() ? acks_ : 0);
}

void SimConnection::schedule_arrival() {
  if (arrival_scheduled_ || arriving_.empty() || events_ == nullptr) return;
  arrival_scheduled_ = true;
  arrival_timer_ = loop_.after(arriving_.front().due - loop_.now(), [this] {
    arrival_scheduled_ = false;
    take_arrival();
    schedule_arrival();
  });
}

void SimConnection::take_arrival() {
  // A loss meanwhile empties the line.
  if (arriving_.empty()) return;
  Packet packet = std::move(arriving_.front());
  arriving_.pop_front();
  const bool killed =
      fabric_.plan_.kills_step() || (packet.kind == PacketKind::Ack && fabric_.plan_.loses_ack());
  if (killed && state_ != State::Gone) return lose();
  dispatch(std::move(packet));
}

void SimConnection::dispatch(Packet packet) {
  if (state_ == State::Ending || state_ == State::Gone) return;
  ++(packet.kind == PacketKind::Ack ? acks_ : arrivals_);
  if (packet.kind == PacketKind::End)
    return end(state_ == State::Closing ? reason_ : packet.reason);
  if (packet.kind == PacketKind::Ack) return on_ack(packet.operation);
  // A side that has closed gets nothing any more but what its own operations wait for.
  if (state_ == State::Closing) return;
  if (packet.kind == PacketKind::ReadResponse) return on_read_response(std::move(packet));
  // The sender's memory is gone with the sender.
  if (peer_ == nullptr || peer_->outbox_.find(packet.operation) == nullptr) return;
  heard();
  if (packet.kind == PacketKind::Send) return on_send(packet.operation);
  if (packet.kind == PacketKind::Write) return on_write(packet.operation);
  on_read_request(packet.operation);
}

void SimConnection::heard() {
  if (!std::exchange(silent_, false)) return;
  schedule_pump();
}

void SimConnection::on_send(Outbox::Id id) {
  const SimOperation& operation = *peer_->outbox_.find(id);
  if (operation.data.size() > setup_.receive.size) return violation(Reason::MessageTooLong);
  if (credit_ == 0) return violation(Reason::ReceiveOverflow);
  if (operation.invalidate) {
    if (!memory_.contains(*operation.invalidate)) return violation(Reason::RemoteAccessDenied);
    invalidated_ = *operation.invalidate;
    invalidated_filled_ = memory_.filled(invalidated_);
    memory_.remove(invalidated_);
  }
  --credit_;
  ++traffic_.sends_in;
  transmit({PacketKind::Ack, id, {}, Reason::None});
  deliver(operation.data, operation.invalidate);
}

void SimConnection::deliver(const Rope& message, std::optional<std::uint32_t> invalidated) {
  Block block = Block::allocate(message.size());
  message.copy_to(block.bytes());
  ++delivering_;
  if (fabric_.random_.chance(500)) {
    events_->on_receive(std::move(block).freeze(message.size()), invalidated);
  } else {
    const MutableBytes lent = block.bytes().first(message.size());
    events_->on_receive(Buffer::borrow(lent), invalidated);
    std::fill(lent.begin(), lent.end(), std::byte{0xdb});
  }
  --delivering_;
}

void SimConnection::on_write(Outbox::Id id) {
  const SimOperation& operation = *peer_->outbox_.find(id);
  const std::size_t size = operation.data.size();
  // RFC 5040 5.2: the STag of a zero-length RDMA Write is not looked at.
  if (size != 0) {
    const auto target =
        memory_.access(Right::Write, operation.remote.handle, operation.remote.offset, size);
    if (!target) return violation(target.error());
    if (!target->sink.empty()) operation.data.copy_to(target->sink);
    memory_.fill(operation.remote.handle, operation.remote.offset + size);
  }
  traffic_.write_bytes_in += size;
  transmit({PacketKind::Ack, id, {}, Reason::None});
}

void SimConnection::on_read_request(Outbox::Id id) {
  const SimOperation& operation = *peer_->outbox_.find(id);
  const RemoteMemory& remote = operation.remote;
  // What the requester will place.
  const std::size_t size = operation.read_size;
  if (peer_->outbox_.outstanding_reads() > setup_.parameters.inbound_reads)
    return violation(Reason::ReadOverflow);
  Buffer data;
  if (size != 0) {
    const auto target = memory_.access(Right::Read, remote.handle, remote.offset, size);
    if (!target) return violation(target.error());
    data = Buffer::copy_of(target->source);
  }
  ++traffic_.reads_in;
  traffic_.read_bytes_out += size;
  const Duration time = fabric_.options_.time_per_mib * size / (1 << 20);
  transmit({PacketKind::ReadResponse, id, std::move(data), Reason::None}, time);
}

void SimConnection::on_read_response(Packet packet) {
  const auto operation = outbox_.take(packet.operation);
  if (!operation) return;
  schedule_pump();  // one more Read may leave
  traffic_.read_bytes_in += packet.data.size();
  std::copy(packet.data.bytes().begin(), packet.data.bytes().end(), operation->sink.begin());
  done(*operation, Reason::None);
}

void SimConnection::on_ack(Outbox::Id id) {
  const auto operation = outbox_.take(id);
  if (operation) done(*operation, Reason::None);
  close_when_sent();
}

// The peer broke the rules: it is told so, and this side ends at once.
void SimConnection::violation(Reason reason) {
  transmit({PacketKind::End, 0, {}, Reason::PeerReportedError});
  end(reason);
}

}  // namespace stag::fabric
