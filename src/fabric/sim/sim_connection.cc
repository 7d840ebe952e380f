#include "fabric/sim/sim_connection.h"

#include <algorithm>

namespace stag::fabric {

SimConnection::SimConnection(SimFabric& fabric, Setup setup)
    : fabric_(fabric),
      loop_(fabric.loop_),
      setup_(std::move(setup)),
      id_(fabric.next_id_++),
      silent_(setup_.passive),
      credit_(setup_.receive.count),
      memory_(fabric.random_) {
  STAG_CHECK(credit_ <= setup_.receives_max);
  fabric_.connections_.emplace(id_, this);
}

SimConnection::~SimConnection() {
  STAG_CHECK(delivering_ == 0);
  fabric_.connections_.erase(id_);
  if (setup_.listener_count) --*setup_.listener_count;
  if (peer_ == nullptr) return;
  transmit({PacketKind::End, 0, {}, Reason::ConnectionClosed});
  peer_->peer_ = nullptr;
}

void SimConnection::join(SimConnection& active, SimConnection& passive) {
  active.peer_ = &passive;
  passive.peer_ = &active;
}

void SimConnection::start(Events& events) {
  STAG_CHECK(events_ == nullptr);
  events_ = &events;
  schedule_pump();
  schedule_arrival();
  if (state_ == State::Ending) schedule_finish();
}

void SimConnection::add_receive_credit(ReceiveCredit more) {
  credit_ += more.count;
  STAG_CHECK(credit_ <= setup_.receives_max);
  setup_.receive.size = more.size;
}

Result<Ok, Reason> SimConnection::registration_limit(std::size_t size) {
  if (state_ != State::Open) return Failure{reason_};
  if (size > setup_.parameters.max_registration) return Failure{Reason::RegistrationTooLong};
  if (memory_.size() >= fabric_.options_.max_registrations || fabric_.plan_.fails_expose())
    return Failure{Reason::RegistrationsExhausted};
  return Ok{};
}

Result<RemoteMemory, Reason> SimConnection::expose_source(Bytes memory) {
  const auto allowed = registration_limit(memory.size());
  if (!allowed) return Failure{allowed.error()};
  return memory_.expose_source(memory);
}

Result<RemoteMemory, Reason> SimConnection::expose_sink(MutableBytes memory) {
  const auto allowed = registration_limit(memory.size());
  if (!allowed) return Failure{allowed.error()};
  return memory_.expose_sink(memory);
}

Revocation SimConnection::revoke(std::uint32_t handle) {
  if (revoking_.count(handle) != 0) {
    memory_.remove(handle);
    return Revocation::Pending;
  }
  return give_back(handle, memory_.remove(handle));
}

Revocation SimConnection::abandon(std::uint32_t handle) {
  STAG_CHECK(setup_.parameters.discards);
  if (memory_.copy_size(handle) > fabric_.options_.max_private_copy) {
    memory_.remove(handle);
    close(Reason::AbandonedMemoryTooLong);
    return Revocation::Done;
  }
  const MutableBytes memory = memory_.abandon(handle);
  return revoking_.count(handle) != 0 ? Revocation::Pending : give_back(handle, memory);
}

std::optional<std::size_t> SimConnection::filled(std::uint32_t handle) const {
  return delivering_ != 0 && handle == invalidated_ ? invalidated_filled_ : memory_.filled(handle);
}

Revocation SimConnection::give_back(std::uint32_t handle, MutableBytes memory) {
  if (memory.empty() || events_ == nullptr || !fabric_.plan_.revokes_slowly())
    return Revocation::Done;
  Timer timer = loop_.after(fabric_.options_.latency + fabric_.plan_.delay(), [this, handle] {
    auto entry = revoking_.extract(handle);
    // Touched to the end: the address sanitizer finds memory that was not kept for us.
    const MutableBytes kept = entry.mapped().first;
    const volatile std::byte* bytes = kept.data();
    for (std::size_t i = 0; i < kept.size(); i += 64) static_cast<void>(bytes[i]);
    ++delivering_;
    events_->on_revoked(handle);
    --delivering_;
  });
  revoking_.emplace(handle, std::make_pair(memory, std::move(timer)));
  return Revocation::Pending;
}

void SimConnection::send(Rope message, std::optional<std::uint32_t> invalidate, Flow flow,
                         Token token) {
  STAG_CHECK(!invalidate || setup_.parameters.remote_invalidation);
  SimOperation operation;
  operation.flow = flow;
  operation.token = token;
  operation.data = std::move(message);
  operation.invalidate = invalidate;
  post(std::move(operation));
}

void SimConnection::write(Rope source, RemoteMemory sink, Flow flow, Token token) {
  STAG_CHECK(source.size() <= sink.length);
  SimOperation operation;
  operation.kind = SimOperationKind::Write;
  operation.flow = flow;
  operation.token = token;
  operation.data = std::move(source);
  operation.remote = sink;
  post(std::move(operation));
}

void SimConnection::read(RemoteMemory source, MutableBytes sink, Flow flow, Token token) {
  STAG_CHECK(sink.size() <= source.length);
  SimOperation operation;
  operation.kind = SimOperationKind::Read;
  operation.flow = flow;
  operation.token = token;
  operation.remote = source;
  operation.sink = sink;
  operation.read_size = sink.size();
  post(std::move(operation));
}

void SimConnection::post(SimOperation operation) {
  outbox_.post(std::move(operation), state_ == State::Open);
  if (state_ == State::Open) {
    schedule_pump();
  } else if (state_ != State::Closing) {
    schedule_finish();
  }
}

void SimConnection::schedule_pump() {
  if (pump_scheduled_ || events_ == nullptr || silent_ || lost_) return;
  pump_scheduled_ = true;
  pump_timer_ = loop_.after(link_free_ - loop_.now(), [this] {
    pump_scheduled_ = false;
    pump();
  });
}

void SimConnection::pump() {
  while (state_ == State::Open || state_ == State::Closing) {
    if (link_free_ > loop_.now()) return schedule_pump();
    if (!depart_one()) break;
  }
  close_when_sent();
}

// False when nothing can leave.
bool SimConnection::depart_one() {
  if (lost_) return false;
  const std::uint32_t ord = setup_.parameters.outbound_reads;
  // Without any Read allowed, a Read is taken out to be failed rather than left to wait for ever.
  const bool may_read = ord == 0 || outbox_.outstanding_reads() < ord;
  Random* shuffle = fabric_.plan_.faults().reorder_flows ? &fabric_.random_ : nullptr;
  const auto id = outbox_.depart(may_read, shuffle);
  if (!id) return false;
  const SimOperation& operation = *outbox_.find(*id);
  if (operation.kind == SimOperationKind::Read && ord == 0) {
    done(*outbox_.take(*id), Reason::ReadsUnavailable);
    return true;
  }
  if (inject_failure(operation)) {
    done(*outbox_.take(*id), Reason::InjectedFault);
    violation(Reason::InjectedFault);
    return false;
  }
  PacketKind kind = PacketKind::Send;
  if (operation.kind == SimOperationKind::Write) kind = PacketKind::Write;
  if (operation.kind == SimOperationKind::Read) kind = PacketKind::ReadRequest;
  const Duration time = fabric_.options_.time_per_mib * operation.data.size() / (1 << 20);
  link_free_ = loop_.now() + time;
  transmit({kind, *id, {}, Reason::None}, time);
  return true;
}

bool SimConnection::inject_failure(const SimOperation& operation) {
  switch (operation.kind) {
    case SimOperationKind::Send:
      ++traffic_.sends_out;
      return fabric_.plan_.fails_send();
    case SimOperationKind::Write:
      ++traffic_.writes_out;
      traffic_.write_bytes_out += operation.data.size();
      return fabric_.plan_.fails_write();
    case SimOperationKind::Read:
      ++traffic_.reads_out;
      return fabric_.plan_.fails_read();
  }
  return false;
}

void SimConnection::transmit(Packet packet, Duration extra) {
  if (peer_ == nullptr || lost_) return;
  packet.due = loop_.now() + extra + fabric_.options_.latency + fabric_.plan_.delay();
  peer_->arrive(std::move(packet));
}

}  // namespace stag::fabric
