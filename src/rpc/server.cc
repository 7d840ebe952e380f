#include "rpc/server.h"

#include <string>

#include "base/failure.h"

namespace stag::rpc {
namespace {

using oncrpc::AcceptStat;
using oncrpc::AuthStat;
using oncrpc::ReplyStatus;

OutgoingReply error_reply(std::uint32_t xid, const ReplyStatus& status) {
  oncrpc::ReplyHeader header;
  header.xid = xid;
  header.status = status;
  xdr::Encoder encoder({}, 64);
  oncrpc::encode(encoder, header);
  OutgoingReply reply;
  reply.stream = std::move(encoder).finish();
  return reply;
}

void trace_call(Reason reason, const IncomingCall& call) {
  // Refusals and the like: rare enough to spell the peer out.
  trace(reason, to_string(call.origin->peer));
}

Reason reason_of(const ReplyStatus& status) {
  if (status.reply == oncrpc::ReplyStat::MSG_DENIED) return Reason::RpcCallUnauthorized;
  if (status.accept == AcceptStat::GARBAGE_ARGS) return Reason::RpcArgumentsMalformed;
  return Reason::RpcProgramUnavailable;
}

std::optional<OutgoingReply> refuse(std::uint32_t xid, const ReplyStatus& status,
                                    const IncomingCall& call) {
  trace_call(reason_of(status), call);
  return error_reply(xid, status);
}

std::optional<OutgoingReply> refuse(const oncrpc::CallFault& fault, const IncomingCall& call) {
  trace_call(fault.reason, call);
  // Who sends another RPC version is told which one is served (RFC 5531 section 9); what is no Call
  // at all gets nothing.
  if (!fault.wrong_rpc_version) return std::nullopt;
  return error_reply(fault.xid, ReplyStatus::rpc_mismatch());
}

std::span<const xdr::ItemId> results_of(const Program::Entry& entry) {
  return entry.binding == nullptr ? std::span<const xdr::ItemId>() : entry.binding->results.ids();
}

// The Reply to a Call that was executed.
std::optional<OutgoingReply> conclude(const Outcome& outcome, xdr::Encoder&& results,
                                      std::uint32_t xid, const IncomingCall& call,
                                      const Program::Entry& entry) {
  if (outcome.encoded && results.ok()) {
    const Pairing pairing = entry.binding == nullptr ? Pairing::Shift : entry.binding->pairing;
    return OutgoingReply{std::move(results).finish(), results_of(entry), pairing};
  }
  if (outcome.encoded) {
    trace_call(Reason::RpcResultsUnencodable, call);
    return error_reply(xid, ReplyStatus::accepted(AcceptStat::SYSTEM_ERR));
  }
  if (!outcome.drop) return refuse(xid, outcome.status, call);
  trace_call(Reason::RpcCallDropped, call);
  return std::nullopt;
}

// Inside a catch block: what the Call's execution threw, and for whom.
void trace_failed(const IncomingCall& call) noexcept {
  try {
    trace_exception(Reason::RpcHandlerFailed, to_string(call.origin->peer));
  } catch (...) {
    trace(Reason::OutOfMemory);
  }
}

// RFC 5531 section 9: SYSTEM_ERR, "errors like memory allocation failure".
std::optional<OutgoingReply> system_error(const IncomingCall& call) {
  if (call.payload.size() < 4) return std::nullopt;
  return error_reply(load_be<std::uint32_t>(call.payload.data()),
                     ReplyStatus::accepted(AcceptStat::SYSTEM_ERR));
}

// Ends the replay cache's entry of a Call that is run, once; as one that has no answer when nobody
// gave one.
class Run {
 public:
  Run(ReplayCache& cache, const ReplayKey& key, Loop& loop)
      : cache_(&cache), key_(key), loop_(loop) {}
  Run(const Run&) = delete;
  ~Run() { finish(std::nullopt); }
  void finish(const std::optional<OutgoingReply>& reply) {
    if (cache_ != nullptr) std::exchange(cache_, nullptr)->finish(key_, loop_, reply);
  }

 private:
  ReplayCache* cache_;
  const ReplayKey& key_;
  Loop& loop_;
};

struct Counted {
  explicit Counted(StripedCount& count) : place_(count.place()) {
    place_.fetch_add(1, std::memory_order_relaxed);
  }
  ~Counted() { place_.fetch_sub(1, std::memory_order_release); }
  StripedCount::Place& place_;
};

}  // namespace

Server::Server(ServerOptions options) : replay_cache_(options.replay_cache) {
  add(auth_none());
  add(auth_sys());
}

Server::~Server() {
  STAG_CHECK(active_calls() == 0);
}

void Server::add(Program program) {
  const std::uint32_t number = program.program();
  const std::uint32_t version = program.version();
  programs_.add(number, version, std::move(program));
}

Program& Server::program(std::uint32_t program, std::uint32_t version) {
  if (Program* found = programs_.find(program, version)) return *found;
  return programs_.add(program, version, Program(program, version));
}

std::vector<const Program*> Server::programs() const {
  std::vector<const Program*> all;
  programs_.for_each([&](const Program& program) { all.push_back(&program); });
  return all;
}

void Server::add(std::unique_ptr<Authenticator> authenticator) {
  for (std::unique_ptr<Authenticator>& own : authenticators_) {
    if (own->flavor() != authenticator->flavor()) continue;
    own = std::move(authenticator);
    return;
  }
  authenticators_.push_back(std::move(authenticator));
}

Authenticator* Server::authenticator(oncrpc::AuthFlavor flavor) const {
  for (const std::unique_ptr<Authenticator>& own : authenticators_)
    if (own->flavor() == flavor) return own.get();
  return nullptr;
}

Result<Caller, AuthStat> Server::authenticate(const oncrpc::CallHeader& header,
                                              const Origin& origin) const {
  Authenticator* knows = authenticator(header.credential.flavor);
  if (knows == nullptr) return Failure{AuthStat::AUTH_REJECTEDCRED};
  return knows->authenticate(header, origin);
}

Result<const Program::Entry*, ReplyStatus> Server::find(const oncrpc::CallHeader& header,
                                                        const Origin& origin) const {
  const auto present = [&](const Program& program) { return program.present_on(origin.transport); };
  const Program* program = programs_.find(header.program, header.version);
  if (program == nullptr || !present(*program))
    return Failure{programs_.missing(header.program, present)};
  const Program::Entry* entry = program->find(header.procedure);
  if (entry == nullptr) return Failure{ReplyStatus::accepted(AcceptStat::PROC_UNAVAIL)};
  return entry;
}

bool Server::is_worth_fetching(const Origin& origin, Bytes message) const {
  xdr::Decoder decoder(Buffer::borrow(message));
  const Result<oncrpc::CallHeader, oncrpc::CallFault> header = oncrpc::decode_call(decoder);
  return header && authenticate(*header, origin) && find(*header, origin);
}

std::uint64_t Server::reply_max(const Origin& origin, const Buffer& call) const noexcept {
  try {
    xdr::Decoder decoder(call);
    const auto header = oncrpc::decode_call(decoder);
    if (!header) return 0;
    const auto found = find(*header, origin);
    if (!found) return 0;
    return oncrpc::kReplyHeaderSize + (*found)->handler->results_max(decoder, (*found)->binding);
  } catch (...) {
    return 0;  // No memory to look at it; there will be none to serve it either.
  }
}

// One coroutine for what every Call goes through: a frame costs as much as its checks. Exceptions
// of handlers, and failed allocations of ours, end here (decision 0014).
Task<std::optional<OutgoingReply>> Server::serve(IncomingCall& call) {
  const Counted counted(active_);
  try {
    xdr::Decoder decoder(call.payload, call.items.empty() ? nullptr : &call.items);
    const Result<oncrpc::CallHeader, oncrpc::CallFault> header = oncrpc::decode_call(decoder);
    if (!header) co_return refuse(header.error(), call);
    Result<Caller, AuthStat> caller = authenticate(*header, *call.origin);
    if (!caller) co_return refuse(header->xid, ReplyStatus::auth_error(caller.error()), call);
    const Result<const Program::Entry*, ReplyStatus> found = find(*header, *call.origin);
    if (!found) co_return refuse(header->xid, found.error(), call);
    const Program::Entry& entry = **found;
    CallContext context(call, *header, *std::move(caller));
    if (entry.binding != nullptr) call.items.allow(entry.binding->arguments.ids());
    if (entry.binding != nullptr && entry.binding->non_idempotent)
      co_return co_await once(context, call, decoder, entry);
    xdr::Encoder encoder(results_of(entry));
    Outcome outcome;
    if (!entry.handler->run_at_once(context, call.items, encoder, outcome))
      outcome = co_await entry.handler->run(context, decoder, call.items, encoder);
    co_return conclude(outcome, std::move(encoder), header->xid, call, entry);
  } catch (...) {
    trace_failed(call);
  }
  co_return system_error(call);
}

Task<std::optional<OutgoingReply>> Server::once(CallContext& context, IncomingCall& call,
                                                xdr::Decoder& decoder,
                                                const Program::Entry& entry) {
  const ReplayKey key =
      replay_key(*call.origin, context.header(), call.payload.bytes(), call.items);
  ReplayCache::Admitted admitted = co_await replay_cache_.admit(key, context.loop());
  if (admitted.admission == ReplayCache::Admission::Replay) {
    trace_call(Reason::RpcReplayed, call);
    co_return std::move(admitted.reply);
  }
  if (admitted.admission == ReplayCache::Admission::Drop) {
    trace_call(Reason::RpcDuplicateDropped, call);
    co_return std::nullopt;
  }
  Run run(replay_cache_, key, context.loop());
  std::optional<OutgoingReply> reply;
  try {
    xdr::Encoder encoder(results_of(entry));
    const Outcome outcome = co_await entry.handler->run(context, decoder, call.items, encoder);
    reply = conclude(outcome, std::move(encoder), context.header().xid, call, entry);
  } catch (...) {
    trace_failed(call);
    // Nobody knows how far it came, so it is not run again: duplicates get this answer.
    reply = system_error(call);
  }
  run.finish(reply);
  co_return reply;
}

}  // namespace stag::rpc
