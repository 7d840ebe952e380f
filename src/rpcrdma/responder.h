// The Responder role of an endpoint: takes Calls within the credits it granted, fetches what was
// reduced, and returns results as the Call's chunks ask (RFC 8166 3.3.1, 3.4, 4.3). Used through
// Connection.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/byte_budget.h"
#include "base/key_table.h"
#include "rpcrdma/header.h"
#include "rpcrdma/incoming_call.h"
#include "rpcrdma/plan.h"
#include "rpcrdma/shape.h"
#include "rpcrdma/sink.h"

namespace stag::rpcrdma {

// Records of Calls that a connection keeps when it has nothing to do.
inline constexpr std::size_t kKeptRecords = 16;

// A stream up to this many bytes is not worth counting: credits bound what they take together.
inline constexpr std::uint32_t kSmallStream = 16384;

struct ResponderSettings {
  std::uint32_t credits = 0;  // granted in every Reply; 0: Calls of the peer are not served
  bool serves_chunks = true;  // false: a Call with chunks draws ERR_CHUNK (RFC 8167 5.3)
  std::uint32_t reply_threshold = kDefaultInlineThreshold;
  bool may_invalidate = false;
  // Bytes of chunks (Read chunks and room for results), of large inline streams and of inline
  // Replies that are not taken, that Calls in progress on this connection may have; further ones
  // wait.
  std::uint64_t max_bytes = 64u << 20;
  // RDMA Reads posted at a time; the others wait here, where they are no more than their segments.
  std::uint32_t max_reads = 64;
  // Room for results counts in full up to so many bytes; more of it as far as the Reply may be as
  // long (Sink::reply_max).
  std::uint32_t usual_result_bytes = 4u << 20;
  ByteBudget::Share* budget = nullptr;  // of what all connections may take; outlives this
};

class Responder {
 public:
  Responder(const ResponderSettings& settings, Sink& sink);
  ~Responder();
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;

  // A Call's message with a sound header; `payload` is what follows the header.
  void on_call(const ParsedHeader& parsed, Bytes payload);
  // A message that was meant as a Call but cannot be one.
  void on_fault(const HeaderFault& fault);
  void on_read_done(IncomingCall& call, Reason outcome);
  void on_reply(IncomingCall& call, const ReplyShape& shape);
  void on_no_reply(IncomingCall& call);
  // The same where the connection is about to be closed: nothing else begins.
  void on_failure(IncomingCall& call) noexcept;
  void on_refusal(IncomingCall& call, Reason reason);
  void on_sent(IncomingCall& call);
  void on_budget();
  void on_disconnect(Reason reason);
  // No Call has come for a while: what more of them took at a time is not kept.
  void on_quiet();

  void serve(std::uint32_t credits) { settings_.credits = credits; }
  std::uint32_t credits() const { return settings_.credits; }
  bool serves() const { return settings_.credits != 0; }
  // Calls received and not answered yet.
  std::uint32_t in_service() const { return static_cast<std::uint32_t>(in_service_.size()); }
  // Records of Calls, in progress and kept.
  std::size_t records() const { return calls_.size(); }
  // Calls that wait for bytes.
  std::size_t waiting() const { return waiting_.size(); }
  // What a Reply sent now would grant: at least 1, less than the setting when bytes run short.
  std::uint32_t grant() const;
  // Calls that came although the last grant did not allow them (but the Receives did).
  std::uint64_t overruns() const { return overruns_; }

 private:
  using State = IncomingCall::State;

  IncomingCall& free_call();
  void make_room_for_call();
  void take_call(IncomingCall& call, const Header& header, Bytes payload);
  void take_chunks(IncomingCall& call, const Header& offered, Bytes payload);
  void release_chunks(IncomingCall& call);
  bool is_shared(const IncomingCall& call, std::uint32_t handle) const;
  void leave_service(const IncomingCall& call) { in_service_.erase(call.xid()); }
  Reason validate(const IncomingCall& call, Bytes payload) const;
  std::uint64_t room_for_results(const Header& header, Bytes payload) const;
  std::uint64_t charge_in_all(const IncomingCall& call) const;
  bool admit(IncomingCall& call);
  void begin(IncomingCall& call, Bytes payload);
  void read_all(IncomingCall& call);
  void post_reads();
  void read_segment(IncomingCall& call);
  void deliver(IncomingCall& call, Bytes payload);
  void send_error(std::uint32_t xid, std::uint32_t version, rpc_rdma_errcode code, Reason reason);
  void refuse(IncomingCall& call, Reason reason);
  void end(IncomingCall& call, Reason reason);
  void release(IncomingCall& call);
  void close(Reason reason);
  std::optional<std::uint32_t> handle_to_invalidate(const IncomingCall& call) const;

  ResponderSettings settings_;
  Sink& sink_;
  std::vector<std::unique_ptr<IncomingCall>> calls_;  // as many as were in progress at a time
  std::vector<IncomingCall*> free_;                   // of calls_
  std::vector<IncomingCall*> waiting_;                // for bytes, oldest first
  std::vector<IncomingCall*> reading_;                // with Reads to be posted, in turns
  KeyTable<IncomingCall*> in_service_;                // those without an answer yet, by XID
  KeyTable<std::uint32_t> handles_;                   // how many Calls have this one handle
  std::uint32_t several_handles_ = 0;                 // Calls whose chunks have more than one
  std::uint32_t last_grant_ = 1;
  std::uint32_t posted_reads_ = 0;
  std::uint64_t bytes_ = 0;   // of the limit, that Calls in progress have
  std::uint64_t unsent_ = 0;  // of inline Replies that wait to be sent
  std::uint64_t overruns_ = 0;
  std::optional<ReplyPlan> plan_{std::in_place};  // of the last Reply; like Connection::arrived_
  bool open_ = true;
};

}  // namespace stag::rpcrdma
