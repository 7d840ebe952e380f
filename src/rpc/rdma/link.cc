#include "rpc/rdma/link.h"

#include <algorithm>

#include "base/failure.h"
#include "rpc/late_xid.h"
#include "rpc/rdma/reports.h"

namespace stag::rpc::rdma {
namespace {

// What an operation was; with the address of its Call, where it has one, a Token. The fabric has
// ended it before the Call's record is used again.
enum class Operation : std::uintptr_t { Read = 1, Reply = 2, Error = 3 };
constexpr std::uintptr_t kOperationBits = 3;
static_assert(alignof(ServedCall) > kOperationBits);

fabric::Token token_of(Operation operation, const ServedCall& call) {
  return reinterpret_cast<std::uintptr_t>(&call) | static_cast<std::uintptr_t>(operation);
}
ServedCall& call_of(fabric::Token token) {
  return *reinterpret_cast<ServedCall*>(token & ~kOperationBits);
}
Operation operation_of(fabric::Token token) {
  return static_cast<Operation>(token & kOperationBits);
}
constexpr fabric::Token kErrorToken = static_cast<fabric::Token>(Operation::Error);

// Flows of Replies and of Calls never meet.
fabric::Flow flow_of(const ServedCall& call) {
  return 1ull << 63 | reinterpret_cast<std::uintptr_t>(&call);
}

ServedCall& served(rpcrdma::IncomingCall& call) {
  return static_cast<ServedCall&>(call);
}

std::uint32_t receive_size(const TransportOptions& options, Side side) {
  return side == Side::Server ? options.call_size() : options.reply_size();
}

// `invalidation`: whether the device of the connection has it.
rpcrdma::PrivateData own_properties(const TransportOptions& options, Side side, bool invalidation) {
  return {.send_size = side == Side::Server ? options.reply_size() : options.call_size(),
          .receive_size = receive_size(options, side),
          .remote_invalidation = options.remote_invalidation && invalidation};
}

rpcrdma::Settings core_settings(const fabric::Connection& connection, const LinkSettings& settings,
                                ByteBudget::Share* budget) {
  rpcrdma::Settings core;
  rpcrdma::PrivateData own;
  if (settings.announced)
    own = own_properties(settings.transport, settings.side,
                         connection.parameters().remote_invalidation);
  core.thresholds =
      rpcrdma::negotiate(own, rpcrdma::decode_private_data(connection.peer_private_data()));
  core.credits_requested = settings.credits_requested;
  core.reserve_probe_credit = settings.reserve_probe_credit;
  core.max_segments = settings.transport.max_segments;
  core.quirks = settings.quirks;
  core.requests_chunks = settings.requests_chunks;
  core.credits_granted = settings.credits_granted;
  core.serves_chunks = settings.serves_chunks;
  core.max_bytes = settings.transport.max_bytes;
  // As many again as the provider keeps outstanding: it always has the next one.
  core.max_reads = std::max(1u, 2 * connection.parameters().outbound_reads);
  core.budget = budget;
  core.header_limits.max_chunk_bytes = settings.transport.max_chunk_bytes;
  return core;
}

// How long a peer may send nothing of what is read from it while others wait for memory.
constexpr Duration kReadsTimeout = std::chrono::seconds(5);
// RDMA_ERROR answers on their way at a time; who sends nonsense and reads nothing is let go.
constexpr std::uint32_t kMostErrors = 128;
// All of them; Calls and Replies have flows of their own.
constexpr fabric::Flow kErrorFlow = 0;
// Of a stream: copied more cheaply than referred to.
constexpr std::uint32_t kMostCopied = 8 * 1024 - rpcrdma::kMinHeaderSize;

// With R set where the peer may invalidate all that we expose (RFC 8797 section 4.1); nothing where
// there is no room for it (section 4).
void announce(fabric::ConnectOptions& connect, const TransportOptions& options,
              const fabric::Fabric& fabric, Side side) {
  const auto octets = rpcrdma::encode_private_data(own_properties(options, side, true));
  if (octets.size() > fabric.max_private_data()) return;
  connect.private_data.assign(octets.begin(), octets.end());
  const auto without = rpcrdma::encode_private_data(own_properties(options, side, false));
  connect.private_data_without_invalidation.emplace(without.begin(), without.end());
}

}  // namespace

fabric::ConnectOptions connection_options(const TransportOptions& options,
                                          const fabric::Fabric& fabric, Side side,
                                          std::uint32_t requested, std::uint32_t granted) {
  fabric::ConnectOptions connect;
  announce(connect, options, fabric, side);
  connect.receive = {0, receive_size(options, side)};
  connect.receives_max = std::max(1u, requested) + granted + rpcrdma::kSpareReceives;
  // Calls, Replies and RDMA_ERRORs, with the Reads and Writes of as many large ones.
  connect.sends_max = requested + 2 * granted + kMostErrors;
  connect.inbound_reads = options.inbound_reads;
  connect.outbound_reads = options.outbound_reads;
  connect.crc = options.crc;
  connect.stall_limit = options.stall_limit;
  return connect;
}

Link::Link(std::unique_ptr<fabric::Connection> connection, const LinkSettings& settings,
           LinkOwner& owner)
    : connection_(std::move(connection)),
      loop_(connection_->loop()),
      settings_(settings),
      receive_size_(receive_size(settings.transport, settings.side)),
      owner_(&owner),
      where_("rdma " + to_string(connection_->peer_address())),
      origin_(std::make_shared<Origin>()),
      budget_(settings.budget == nullptr
                  ? nullptr
                  : std::make_shared<ByteBudget::Share>(
                        settings.budget, connection_->peer_address().host, loop_,
                        [this] { guarded([this] { core_.on_budget(); }); })),
      core_(core_settings(*connection_, settings, budget_.get()), *this) {
  origin_->peer = connection_->peer_address();
  origin_->local = connection_->local_address();
  origin_->transport = TransportKind::Rdma;
  origin_->netid = origin_->peer.host.find(':') == std::string::npos ? "rdma" : "rdma6";
  origin_->loop = &loop_;
  origin_->connection = std::make_shared<rpc::Connection>();
}

Link::~Link() {
  tell_of_end(Reason::OutOfMemory);
  origin_->connection->end();
  STAG_CHECK(settling_.empty());
}

void Link::open(Service* service, std::weak_ptr<rpc::Channel> reverse) {
  service_ = service;
  origin_->reverse = std::move(reverse);
  if (service != nullptr && settings_.side == Side::Server) observer_ = service->observer();
  if (observer_ != nullptr) observer_->on_connected(*origin_);
  core_.start();
  connection_->start(*this);
}

void Link::close(Reason reason) {
  if (up_) connection_->close(reason);
}

bool Link::progressed() {
  const std::uint64_t mark = up_ ? connection_->progress_mark() : progress_mark_;
  return std::exchange(progress_mark_, mark) != mark;
}

void Link::serve(Service& service, std::uint32_t credits) {
  service_ = &service;
  core_.serve_calls(credits);
}

// Requester.

ChannelLimits Link::limits() const {
  const rpcrdma::Requester& requester = core_.requester();
  const rpcrdma::CallLimits& sizes = requester.limits();
  return {.calls = requester.credit_limit(),
          .call_max = sizes.call_threshold - rpcrdma::kMinHeaderSize,
          .reply_max = sizes.reply_threshold - rpcrdma::kMinHeaderSize,
          .chunks = requester.sends_chunks()};
}

void Link::start(PendingCall& call) {
  call.renew();
  if (!up()) return finish(call, Reason::ConnectionLost, true);
  try {
    call.prepare(connection_->parameters(), settings_.transport);
  } catch (const std::bad_alloc&) {
    return finish(call, Reason::OutOfMemory, false);
  }
  guarded([&] { core_.on_call(call); });
}

Result<rpcrdma::ExposedChunks, Reason> Link::expose(rpcrdma::OutgoingCall& call) {
  auto& pending = static_cast<PendingCall&>(call);
  auto chunks = pending.expose(*connection_);
  if (chunks) return chunks;
  pending.registrations().revoke(*connection_);
  // Not for want of room: the connection is about to end. Its calls belong on the next one.
  if (chunks.error() != Reason::OutOfMemory && chunks.error() != Reason::RegistrationsExhausted &&
      chunks.error() != Reason::RegistrationTooLong) {
    ending_ = true;
    close(chunks.error());
  }
  return chunks;
}

void Link::send_call(rpcrdma::OutgoingCall& call, Bytes header) {
  const auto& pending = static_cast<PendingCall&>(call);
  const bool has_stream = call.plan().form == rpcrdma::Form::Inline;
  if (has_stream && call.plan().stream_length <= kMostCopied) {
    xdr::Stream::Parts parts{header};
    pending.add_inline_stream(parts);
    return connection_->send_copy({parts.data(), parts.size()}, std::nullopt, next_flow_++,
                                  fabric::kNoToken);
  }
  Rope message = Rope::copy_of(header);
  if (has_stream) message.append(pending.inline_stream());
  connection_->send(std::move(message), std::nullopt, next_flow_++, fabric::kNoToken);
}

void Link::deliver_reply(rpcrdma::OutgoingCall& call, const rpcrdma::ReplyArrival& reply) {
  auto& pending = static_cast<PendingCall&>(call);
  Reason reason = Reason::None;
  try {
    if (pending.registrations().held()) reason = take_back_results(pending, reply);
    if (settings_.transfer_stats != nullptr) pending.count(*settings_.transfer_stats, reply);
    if (reason == Reason::None) pending.collect(reply, pending.end.emplace().reply);
  } catch (const std::bad_alloc&) {
    // The core has forgotten the Call: nobody else would end it.
    reason = Reason::OutOfMemory;
    on_out_of_memory();
  }
  finish(pending, reason, false);
}

void Link::fail_call(rpcrdma::OutgoingCall& call, const rpcrdma::CallFailure& failure) {
  auto& pending = static_cast<PendingCall&>(call);
  if (up_) cut_off(pending);
  finish(pending, failure.reason, !up());
}

void Link::finish(PendingCall& call, Reason reason, bool connection_lost) {
  if (!up_) call.registrations().on_disconnect();
  if (!call.end) call.end.emplace();
  call.end->reason = reason;
  call.end->connection_lost = connection_lost;
  settle(call);
}

void Link::settle(PendingCall& call) {
  if (!call.registrations().held()) {
    if (call.plan().needs_memory()) release_memory(call);
    return call.done().complete(Ok{});
  }
  call.keep_reply();
  settling_.push(call);
  if (settling_.oldest() == &call) watch_settling();
}

// Responder.

std::unique_ptr<rpcrdma::IncomingCall> Link::make_call() {
  if (core_.responder().records() >= rpcrdma::kKeptRecords) watch_records();
  ServedCallOwner& owner = *this;
  return std::make_unique<ServedCall>(owner, origin_);
}

// A message with memory of its own is not copied again.
Buffer Link::kept(Bytes part) const {
  if (part.empty()) return {};
  STAG_CHECK(arriving_ != nullptr);
  if (!arriving_->owned()) return Buffer::copy_of(part);
  return arriving_->slice(static_cast<std::size_t>(part.data() - arriving_->data()), part.size());
}

bool Link::is_worth_reading(Bytes payload) const {
  return service_->is_worth_fetching(*origin_, payload);
}

std::uint64_t Link::reply_max(Bytes payload) const {
  return service_->reply_max(*origin_, Buffer::borrow(payload)).value_or(~std::uint64_t{0});
}

// It has to wait: what is not counted must not keep more memory than its own.
void Link::defer_call(rpcrdma::IncomingCall& call, Bytes payload) {
  served(call).defer(*service_, payload.size() <= rpcrdma::kSmallStream ? Buffer::copy_of(payload)
                                                                        : kept(payload));
}

bool Link::start_reads(rpcrdma::IncomingCall& call, std::span<const rpcrdma::ArrivedItem> items) {
  if (!served(call).make_room(*service_, items)) return false;
  watch_reads();
  return true;
}

void Link::read(rpcrdma::IncomingCall& call, std::uint32_t item, std::uint32_t offset,
                const rpcrdma::Segment& from) {
  ++reads_;
  connection_->read({from.handle, from.length, from.offset},
                    served(call).sink(item, offset, from.length), flow_of(served(call)),
                    token_of(Operation::Read, served(call)));
}

Bytes Link::long_call(rpcrdma::IncomingCall& call) {
  return served(call).buffer(0);
}

void Link::deliver_call(rpcrdma::IncomingCall& call, const rpcrdma::CallArrival& arrival) {
  ServedCall& served = rdma::served(call);
  STAG_CHECK(service_ != nullptr);
  if (observer_ != nullptr) observer_->on_call_arrived(*origin_, report_of(served, arrival));
  try {
    const bool is_small = arrival.payload.size() <= ServedCall::kRoomForStream;
    served.serve(*service_, arrival,
                 is_small ? served.keep_stream(arrival.payload) : kept(arrival.payload));
  } catch (...) {
    return close(trace_exception(Reason::RpcHandlerFailed, where_));
  }
  // Most are answered by now.
  if (served.in_service()) served.keep(shared_from_this());
}

void Link::on_served(ServedCall& call) noexcept {
  try {
    answer(call);
  } catch (const std::bad_alloc&) {
    call.release();
    core_.on_failure(call);
    on_out_of_memory();
  } catch (...) {
    const Reason reason = trace_exception(Reason::RpcHandlerFailed, where_);
    call.release();
    core_.on_failure(call);
    close(reason);
  }
}

inline void Link::answer(ServedCall& call) {
  const std::optional<OutgoingReply>& reply = call.reply();
  // Without a connection there is nobody to answer; what the Call has taken is for others.
  if (!up_) [[unlikely]]
    return core_.on_no_reply(call);
  if (!reply || !reply->stream.ok()) {
    if (call.close() != Reason::None) close(call.close());
    return core_.on_no_reply(call);
  }
  core_.on_reply(call, call.shape());
}

// RFC 8166 4.4.2: the results leave before the Send, in one flow with it. `stream` is what does not
// go apart.
void Link::write(ServedCall& call, const rpcrdma::ReplyPlan& plan, const Rope& stream) {
  for (const rpcrdma::Placement& placement : plan.writes) {
    const rpcrdma::Segment& to = placement.to;
    const bool whole = placement.item == rpcrdma::kReplyStream;
    const Rope source = whole ? stream : call.item_bytes(placement.item);
    connection_->write(source.slice(placement.offset, to.length), {to.handle, to.length, to.offset},
                       flow_of(call), fabric::kNoToken);
  }
}

void Link::tell_of_end(Reason reason) noexcept {
  if (Observer* const observer = std::exchange(observer_, nullptr))
    observer->on_disconnected(*origin_, reason);
}

void Link::send_reply(rpcrdma::IncomingCall& call, Bytes header, const rpcrdma::ReplyPlan& plan,
                      std::optional<std::uint32_t> invalidate) {
  ServedCall& served = rdma::served(call);
  const fabric::Token token = token_of(Operation::Reply, served);
  const xdr::Stream& reply = served.reply()->stream;
  InlineVector<std::uint32_t, 2> moved;
  if (!plan.reduced.empty()) moved = served.sources(plan.reduced);
  const std::span<const std::uint32_t> apart(moved.data(), moved.size());
  const bool is_inline = plan.form == rpcrdma::Form::Inline;
  const bool copied = is_inline && plan.stream_length <= kMostCopied;
  const Rope stream = copied ? Rope() : reply.without(apart);
  if (observer_ != nullptr) observer_->on_reply_sent(*origin_, report_of(served, header, plan));
  if (!plan.writes.empty()) write(served, plan, stream);
  if (copied) {
    xdr::Stream::Parts parts{header};
    reply.add_parts_without(apart, parts);
    connection_->send_copy({parts.data(), parts.size()}, invalidate, flow_of(served), token);
  } else {
    Rope message = Rope::copy_of(header);
    if (is_inline) message.append(stream);
    connection_->send(std::move(message), invalidate, flow_of(served), token);
  }
  served.release();
}

void Link::forget_call(rpcrdma::IncomingCall& call, Reason reason) {
  if (reason != Reason::None) trace_late(reason, where_, LateXid(call.xid()));
  served(call).release();
}

// A peer that sends nothing of what is read from it keeps its memory no longer than an interval or
// two when others wait for it. As long as nobody does, the stall limit is enough.
void Link::watch_reads() {
  if (budget_ == nullptr || reads_watched_) return;
  reads_watched_ = true;
  reads_timer_ = loop_.after(kReadsTimeout, [this] { guarded([this] { on_reads_tick(); }); });
}

void Link::on_reads_tick() {
  reads_watched_ = false;
  const std::uint64_t bytes = connection_->traffic().read_bytes_in;
  const bool stalled = reads_at_tick_ != 0 && reads_ != 0 && bytes == bytes_at_tick_;
  if (stalled && budget_->budget().waiting() != 0) return close(Reason::RdmaReadsStalled);
  reads_at_tick_ = reads_;
  bytes_at_tick_ = bytes;
  if (reads_ != 0) watch_reads();
}

// Connection.

void Link::post_receives(std::uint32_t count) {
  connection_->add_receive_credit({count, receive_size_});
}

void Link::drop(Reason reason) {
  trace(reason, where_);
}

void Link::send_error(Buffer message, Reason reason) {
  Rope error(std::move(message));
  trace_late(reason, where_, LateXid(error));
  if (errors_leaving_ == kMostErrors) return close(reason);
  ++errors_leaving_;
  connection_->send(std::move(error), std::nullopt, kErrorFlow, kErrorToken);
}

// An event that is left half done leaves the core as good as for its end, no better.
template <class Work>
void Link::guarded(Work work) noexcept {
  if (out_of_memory_) return on_out_of_memory();
  try {
    work();
  } catch (const std::bad_alloc&) {
    on_out_of_memory();
  }
}

// Where there is no memory even for that, the next event tries again.
void Link::on_out_of_memory() noexcept {
  out_of_memory_ = ending_ = true;
  try {
    close(Reason::OutOfMemory);
  } catch (const std::bad_alloc&) {
  }
}

void Link::on_receive(Buffer message, std::optional<std::uint32_t> invalidated) {
  const Bytes bytes = message.bytes();
  arriving_ = &message;
  guarded([&] { core_.on_receive(bytes, invalidated); });
  arriving_ = nullptr;
  if (abandoned_.empty() || bytes.size() < 4 || !up_) return;
  const auto xid = load_be<std::uint32_t>(bytes.data());
  if (!core_.requester().awaits(xid)) abandoned_.release(xid, *connection_);
}

void Link::on_done(fabric::Token token, Reason outcome) {
  if (operation_of(token) == Operation::Read) {
    --reads_;
    return guarded([&] { core_.on_read_done(call_of(token), outcome); });
  }
  if (operation_of(token) == Operation::Reply) {
    guarded([&] { core_.on_sent(call_of(token)); });
  } else {
    --errors_leaving_;
  }
  // RFC 8166 4.5.4: where neither a Reply nor an error can be sent, the peer must not wait for one.
  if (outcome != Reason::None) close(outcome);
}

void Link::on_disconnect(Reason reason) {
  const std::shared_ptr<Link> self = shared_from_this();
  up_ = false;
  trace(reason, where_);
  settling_timer_.cancel();
  reads_timer_.cancel();
  records_timer_.cancel();
  abandoned_.clear();
  while (PendingCall* const call = settling_.pop()) {
    call->registrations().on_disconnect();
    settle(*call);
  }
  core_.on_disconnect(reason);
  tell_of_end(reason);
  origin_->connection->end();
  // An event of the connection is being delivered: it ends in a later turn.
  loop_.post([self] { self->connection_.reset(); });
  if (owner_ != nullptr) owner_->on_link_down(*this, reason);
}

}  // namespace stag::rpc::rdma
