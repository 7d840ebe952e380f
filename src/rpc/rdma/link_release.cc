// How a Link gets back the memory of Calls that end before their time, or whose revocation takes
// some.
#include <new>

#include "rpc/rdma/link.h"

namespace stag::rpc::rdma {
namespace {

// An interval in which a Link has no more Calls than it keeps records.
constexpr Duration kQuiet = std::chrono::seconds(5);

}  // namespace

void Link::give_up(PendingCall& call, Reason reason) {
  if (call.end) return;  // Ended already; only its memory is still on its way back.
  const bool sent = call.sent();
  core_.on_cancel(call);
  try {
    if (sent && up_) abandoned_.add(call, *connection_);
  } catch (const std::bad_alloc&) {
    cut_off(call);
    on_out_of_memory();
  }
  finish(call, reason, false);
}

// RFC 8166 4.4.1: no byte of the results is looked at before the peer is cut off from them. What it
// has written is known only until then.
Reason Link::take_back_results(PendingCall& call, const rpcrdma::ReplyArrival& reply) {
  const Reason reason = call.check_written(*connection_, reply);
  if (reason != Reason::None) close(reason);
  call.registrations().revoke(*connection_, reply.invalidated);
  return reason;
}

// All of it is free.
void Link::release_memory(PendingCall& call) {
  if (!call.reply_is_own()) {
    call.end->reply = {};
    call.end->reason = Reason::RdmaXidMismatch;
    close(Reason::RdmaXidMismatch);
  }
  call.release();
}

// What the fabric finds no memory to revoke is free with the connection.
void Link::cut_off(PendingCall& call) noexcept {
  try {
    call.registrations().revoke(*connection_);
  } catch (const std::bad_alloc&) {
    on_out_of_memory();
  }
}

// RFC 8166 4.5.4: memory that cannot be cut off from the peer costs the connection, before its call
// ends. A revocation may wait in the send queue behind messages that the peer has not acknowledged
// yet: a network that pauses is no device that fails, and the peer has the time that it has for
// them.
void Link::watch_settling() {
  const Duration limit = settings_.transport.stall_limit;
  if (limit == Duration::zero()) return;
  try {
    settling_timer_ = loop_.after(limit, [this] { close(Reason::RdmaRevocationStuck); });
  } catch (const std::bad_alloc&) {
    on_out_of_memory();
  }
}

// A peer that had many Calls at a time may be one that never does again. Where there is no memory
// for the timer, the records stay.
void Link::watch_records() noexcept {
  if (records_watched_) return;
  try {
    records_timer_ = loop_.after(kQuiet, [this] { on_records_tick(); });
    records_watched_ = true;
  } catch (const std::bad_alloc&) {
  }
}

void Link::on_records_tick() {
  records_watched_ = false;
  const std::uint64_t sends = connection_->traffic().sends_in;
  const bool quiet = sends - std::exchange(sends_at_tick_, sends) <= rpcrdma::kKeptRecords;
  if (quiet && !out_of_memory_) core_.on_quiet();
  if (core_.responder().records() > rpcrdma::kKeptRecords) watch_records();
}

void Link::on_revoked(std::uint32_t handle) {
  PendingCall* const call = settling_.on_revoked(handle);
  if (call == nullptr) return static_cast<void>(abandoned_.on_revoked(handle));
  if (call->registrations().held()) return;
  const bool oldest = settling_.oldest() == call;
  settling_.remove(*call);
  if (settling_.empty())
    settling_timer_.cancel();
  else if (oldest)
    watch_settling();
  settle(*call);
}

}  // namespace stag::rpc::rdma
