#include "fabric/iwarp/iwarp_connection.h"

#include <algorithm>
#include <new>

#include "net/loop.h"

namespace stag::fabric {
namespace {

Parameters parameters_of(const IwarpSetup& setup) {
  Parameters parameters;
  parameters.outbound_reads = setup.negotiated.ord;
  parameters.inbound_reads = setup.negotiated.ird;
  parameters.max_registration = setup.options->max_registration;
  parameters.remote_invalidation = true;
  return parameters;
}

iwarp::ReceiverOptions receiver_options(const iwarp::Negotiated& negotiated, std::size_t direct) {
  iwarp::ReceiverOptions options;
  options.crc = negotiated.crc;
  options.ird = negotiated.ird;
  options.ord = negotiated.ord;
  options.direct_threshold = direct;
  return options;
}

iwarp::SenderOptions sender_options(const IwarpSetup& setup) {
  iwarp::SenderOptions options;
  options.crc = setup.negotiated.crc;
  options.markers = setup.negotiated.markers_to_send;
  options.max_ulpdu = setup.options->max_ulpdu;
  return options;
}

// As many full FPDUs as fit: no stunted one at the end of each message of a long Write.
std::size_t write_message(const IwarpOptions& options) {
  const std::size_t ulpdu =
      std::clamp(options.max_ulpdu, iwarp::kLeastMulpdu, iwarp::kLargestMulpdu);
  const std::size_t payload = (ulpdu - iwarp::kTaggedHeaderSize) & ~std::size_t{3};
  return std::max<std::size_t>(options.write_message / payload, 1) * payload;
}

}  // namespace

IwarpConnection::IwarpConnection(IwarpSetup setup)
    : options_(setup.options),
      socket_(std::move(setup.socket)),
      loop_(socket_.loop()),
      active_(setup.active),
      parameters_(parameters_of(setup)),
      private_data_(std::move(setup.peer_private_data)),
      peer_(socket_.peer()),
      local_(socket_.local()),
      place_(std::move(setup.place)),
      anchor_(std::make_shared<Anchor>(Anchor{this})),
      table_(entropy_),
      receiver_(receiver_options(setup.negotiated, kDirectThreshold), table_, *this),
      sender_(sender_options(setup), table_),
      queue_(write_message(*options_), options_->write_turn),
      stall_limit_(setup.stall_limit),
      taking_(stall_limit_),
      answering_(stall_limit_),
      ending_(stall_limit_) {
  // The stall limit is this connection's to see to.
  socket_.drop_user_timeout();
  receiver_.add_receive_credit(setup.receive.count, setup.receive.size);
  if (!active_ || options_->first_fpdu_delay == Duration(0)) return;
  held_ = true;
  hold_ = loop_.after(options_->first_fpdu_delay, [this] {
    held_ = false;
    flush();
  });
}

IwarpConnection::~IwarpConnection() {
  anchor_->connection = nullptr;
}

void IwarpConnection::later(void (IwarpConnection::*step)()) {
  loop_.post([anchor = anchor_, step] {
    if (anchor->connection != nullptr) (anchor->connection->*step)();
  });
}

void IwarpConnection::start(Events& events) {
  STAG_CHECK(events_ == nullptr);
  events_ = &events;
  later(&IwarpConnection::begin_events);
}

void IwarpConnection::begin_events() {
  if (state_ == State::Ended) return tell_end();
  on_readable();
}

const Traffic& IwarpConnection::traffic() const {
  const iwarp::ReceiverTraffic& received = receiver_.traffic();
  traffic_.sends_in = received.sends;
  traffic_.write_bytes_in = received.write_bytes;
  traffic_.read_bytes_in = receiver_.read_bytes();
  traffic_.reads_in = received.read_requests;
  traffic_.payload_bytes_copied = received.copied_bytes;
  return traffic_;
}

void IwarpConnection::add_receive_credit(ReceiveCredit more) {
  receiver_.add_receive_credit(more.count, more.size);
}

Result<RemoteMemory, Reason> IwarpConnection::exposed(std::optional<std::uint32_t> stag,
                                                      std::uint64_t offset, std::size_t length) {
  if (!stag) return Failure{Reason::RegistrationsExhausted};
  tally_.add(table_.live());
  return RemoteMemory{*stag, static_cast<std::uint32_t>(length), offset};
}

Result<RemoteMemory, Reason> IwarpConnection::expose_source(Bytes memory) {
  if (state_ != State::Open) return Failure{reason_};
  if (memory.size() > parameters_.max_registration) return Failure{Reason::RegistrationTooLong};
  // Not zero-based: who treats offsets as anything but opaque is found out early. Half the range
  // keeps clear of its end.
  const std::uint64_t offset = entropy_.next() >> 1;
  return exposed(table_.expose_source(memory, offset), offset, memory.size());
}

Result<RemoteMemory, Reason> IwarpConnection::expose_sink(MutableBytes memory) {
  if (state_ != State::Open) return Failure{reason_};
  if (memory.size() > parameters_.max_registration) return Failure{Reason::RegistrationTooLong};
  const std::uint64_t offset = entropy_.next() >> 1;
  return exposed(table_.expose_sink(memory, offset), offset, memory.size());
}

void IwarpConnection::release_unwritten() try {
  if (batch_.written() < borrowed_until_) batch_.take_private_copies();
  borrowed_until_ = 0;
} catch (const std::bad_alloc&) {
  break_off();
}

void IwarpConnection::keep_private_copy(std::uint32_t handle, Bytes source) try {
  private_copies_.emplace_back(handle, source.size());
  table_.substitute(handle, Buffer::copy_of(source));
} catch (const std::bad_alloc&) {
  revoke(handle);
  close(Reason::OutOfMemory);
}

void IwarpConnection::drop_private_copy(std::uint32_t handle) {
  std::erase_if(private_copies_, [handle](const auto& copy) { return copy.first == handle; });
}

Revocation IwarpConnection::revoke(std::uint32_t handle) {
  if (state_ == State::Ended || !table_.revoke(handle)) return Revocation::Done;
  tally_.see(table_.live());
  release_unwritten();
  drop_private_copy(handle);
  return Revocation::Done;
}

Revocation IwarpConnection::abandon(std::uint32_t handle) {
  if (state_ == State::Ended || table_.discard(handle)) return Revocation::Done;
  const std::optional<Bytes> source = table_.exposed_source(handle);
  if (!source) return Revocation::Done;
  release_unwritten();
  // A peer that has read all of it has no reason to read it again; if it does, it loses the
  // connection.
  if (table_.retire(handle)) return Revocation::Done;
  std::size_t held = source->size();
  for (const auto& [other, bytes] : private_copies_) held += bytes;
  if (source->size() > options_->max_private_copy || held > options_->max_private_copies) {
    table_.revoke(handle);
    close(Reason::AbandonedMemoryTooLong);
  } else {
    keep_private_copy(handle, *source);
  }
  return Revocation::Done;
}

void IwarpConnection::write(Rope source, RemoteMemory sink, Flow flow, Token token) {
  STAG_CHECK(source.size() <= sink.length);
  Operation operation;
  operation.kind = OperationKind::Write;
  operation.flow = flow;
  operation.token = token;
  operation.bytes = std::move(source);
  operation.remote = sink;
  post(std::move(operation));
}

void IwarpConnection::read(RemoteMemory source, MutableBytes sink, Flow flow, Token token) {
  STAG_CHECK(sink.size() <= source.length);
  Operation operation;
  operation.kind = OperationKind::Read;
  operation.flow = flow;
  operation.token = token;
  operation.remote = source;
  operation.sink = sink;
  post(std::move(operation));
}

}  // namespace stag::fabric
