#include "rpc/server.h"

#include "base/failure.h"
#include "gss/credential.h"
#include "rpc/call_watch.h"
#include "rpc/loop_counts.h"

namespace stag::rpc {
namespace {

using oncrpc::AcceptStat;
using oncrpc::AuthStat;
using oncrpc::ReplyStatus;

// A Reply without results. One that is accepted has the verifier of the Call's `protection`.
OutgoingReply error_reply(std::uint32_t xid, const ReplyStatus& status,
                          Protection* protection = nullptr) {
  oncrpc::ReplyHeader header;
  header.xid = xid;
  if (protection != nullptr) header.verifier = protection->reply_verifier();
  header.status = status;
  xdr::Encoder encoder({}, 64);
  oncrpc::encode(encoder, header);
  OutgoingReply reply;
  reply.stream = std::move(encoder).finish();
  return reply;
}

// Goes on to the arguments themselves, as far as they can be read before anything is verified; else
// the error is what the Reply may be (Service::reply_max).
Result<Ok, std::optional<std::uint64_t>> to_plain_arguments(const oncrpc::CallHeader& header,
                                                            xdr::Decoder& decoder) {
  constexpr std::optional<std::uint64_t> kUnknown, kShort = 0;
  if (header.credential.flavor != oncrpc::AuthFlavor::RPCSEC_GSS) return Ok{};
  const auto credential = gss::decode_credential(header.credential.body);
  if (!credential || credential->control()) return Failure{kShort};
  if (credential->service == gss::Service::privacy) return Failure{kUnknown};
  // RFC 2203 5.3.2.2: the length of what is signed, and the sequence number that it begins with.
  std::uint32_t length = 0, seq_num = 0;
  if (credential->service == gss::Service::integrity && !decoder.integers(length, seq_num))
    return Failure{kShort};
  return Ok{};
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
                                    const IncomingCall& call, Protection* protection = nullptr) {
  trace_call(reason_of(status), call);
  return error_reply(xid, status, protection);
}

std::optional<OutgoingReply> refuse(const oncrpc::CallFault& fault, const IncomingCall& call) {
  trace_call(fault.reason, call);
  // A Call of another RPC version is answered with the version that is served (RFC 5531 section 9);
  // a message that is no Call gets no answer.
  if (!fault.wrong_rpc_version) return std::nullopt;
  return error_reply(fault.xid, ReplyStatus::rpc_mismatch());
}

std::span<const xdr::ItemId> results_of(const Program::Entry& entry) {
  return entry.binding == nullptr ? std::span<const xdr::ItemId>() : entry.binding->results.ids();
}

Pairing pairing_of(const Program::Entry& entry) {
  return entry.binding == nullptr ? Pairing::Shift : entry.binding->pairing;
}

// The Reply to a Call that was executed and has no results that can be sent.
std::optional<OutgoingReply> reply_without_results(const HandlerOutcome& outcome, std::uint32_t xid,
                                                   const IncomingCall& call) {
  if (outcome.encoded) {
    trace_call(Reason::RpcResultsUnencodable, call);
    return error_reply(xid, ReplyStatus::accepted(AcceptStat::SYSTEM_ERR));
  }
  if (!outcome.drop) return refuse(xid, outcome.status, call);
  trace_call(Reason::RpcCallDropped, call);
  return std::nullopt;
}

// The same where the results are to be kept, or protected.
std::optional<CallResults> results_of(const HandlerOutcome& outcome, xdr::Encoder&& results,
                                      const IncomingCall& call) {
  CallResults kept{outcome.status, {}};
  if (outcome.encoded && results.ok()) {
    kept.results = std::move(results).finish();
  } else if (outcome.encoded) {
    trace_call(Reason::RpcResultsUnencodable, call);
    kept.status = ReplyStatus::accepted(AcceptStat::SYSTEM_ERR);
  } else if (outcome.drop) {
    trace_call(Reason::RpcCallDropped, call);
    return std::nullopt;
  } else {
    trace_call(reason_of(outcome.status), call);
  }
  return kept;
}

// The Reply to a Call that no program receives.
std::optional<OutgoingReply> answer(std::uint32_t xid, const Authentication& who,
                                    IncomingCall& call) {
  if (who.verdict == Authentication::Verdict::Refused)
    return refuse(xid, ReplyStatus::auth_error(who.refusal), call);
  if (who.verdict == Authentication::Verdict::Dropped) {
    trace_call(who.reason, call);
    call.close = who.reason;
    return std::nullopt;
  }
  oncrpc::OpaqueAuth verifier;
  if (who.protection != nullptr) verifier = who.protection->reply_verifier();
  xdr::Encoder encoder;
  oncrpc::encode_success(encoder, xid, verifier);
  if (who.results) encoder.append(*who.results);
  return OutgoingReply{std::move(encoder).finish(), {}, Pairing::Shift};
}

// Called inside a catch block: traces the exception of a Call's execution with the address of its
// client.
void trace_failed(const IncomingCall& call) noexcept {
  try {
    trace_exception(Reason::RpcHandlerFailed, to_string(call.origin->peer));
  } catch (...) {
    trace(Reason::OutOfMemory);
  }
}

// RFC 5531 section 9: SYSTEM_ERR, "errors like memory allocation failure". Where the verifier
// cannot be made either, the exception ends the connection (Service::serve): the client would not
// believe a Reply without it.
std::optional<OutgoingReply> system_error(const IncomingCall& call, Protection* protection) {
  if (call.payload.size() < 4) return std::nullopt;
  return error_reply(load_be<std::uint32_t>(call.payload.data()),
                     ReplyStatus::accepted(AcceptStat::SYSTEM_ERR), protection);
}

// Ends the replay cache's entry of a Call that runs, exactly once; without an answer if the run
// yields none.
class Run {
 public:
  Run(ReplayCache& cache, const ReplayKey& key, Loop& loop)
      : cache_(&cache), key_(key), loop_(loop) {}
  Run(const Run&) = delete;
  ~Run() { finish(std::nullopt); }
  void finish(const std::optional<CallResults>& results) {
    if (cache_ != nullptr) std::exchange(cache_, nullptr)->finish(key_, loop_, results);
  }

 private:
  ReplayCache* cache_;
  const ReplayKey& key_;
  Loop& loop_;
};

// It is unknown how far a Call came that ended by an exception: it has results (SYSTEM_ERR) all the
// same, so that a Call which must not run twice does not.
Task<std::optional<CallResults>> run(CallContext& context, const IncomingCall& call,
                                     xdr::Decoder& decoder, const Program::Entry& entry) {
  try {
    xdr::Encoder encoder(results_of(entry));
    const HandlerOutcome outcome =
        co_await entry.handler->run(context, decoder, call.items, encoder);
    co_return results_of(outcome, std::move(encoder), call);
  } catch (...) {
    trace_failed(call);
  }
  co_return CallResults{ReplyStatus::accepted(AcceptStat::SYSTEM_ERR), {}};
}

// An RPC header of its own in front of results that were kept, or are to be protected.
Task<std::optional<OutgoingReply>> reply_of(std::uint32_t xid, CallResults results,
                                            const Program::Entry& entry, Protection* protection) {
  if (!results.status.success()) co_return error_reply(xid, results.status, protection);
  const bool transforms = protection != nullptr && protection->transforms();
  if (transforms) {
    std::optional<xdr::Stream> wrapped = co_await protection->wrap(std::move(results.results));
    if (!wrapped) {
      trace(Reason::RpcProtectionFailed);
      co_return error_reply(xid, ReplyStatus::accepted(AcceptStat::SYSTEM_ERR), protection);
    }
    results.results = *std::move(wrapped);
  }
  const oncrpc::OpaqueAuth verifier =
      protection == nullptr ? oncrpc::OpaqueAuth{} : protection->reply_verifier();
  xdr::Encoder encoder(
      {}, results.results.head().size() + oncrpc::kReplyHeaderSize + verifier.body.size() + 4);
  oncrpc::encode_success(encoder, xid, verifier);
  encoder.append(results.results);
  OutgoingReply reply{std::move(encoder).finish(), {}, pairing_of(entry)};
  if (!transforms) reply.eligible = results_of(entry);
  co_return reply;
}

struct Counted {
  Counted(LoopCounts& counts, const Loop* loop) : place_(counts.place(loop)) {
    // Ordered with the look at stopped_, so that stop_serving() overlooks no Call.
    place_.fetch_add(1, std::memory_order_seq_cst);
  }
  ~Counted() { place_.fetch_sub(1, std::memory_order_release); }
  LoopCounts::Place& place_;
};

}  // namespace

Server::Server(ServerOptions options)
    : replay_cache_(options.replay_cache), active_(std::make_unique<LoopCounts>()) {
  // In the order in which they are looked for.
  add(auth_sys());
  add(auth_none());
}

Server::~Server() {
  STAG_CHECK(active_calls() == 0);
}

std::size_t Server::active_calls() const {
  return active_->sum();
}

std::size_t Server::active_calls_on(const Loop& loop) const {
  return active_->of(loop);
}

void Server::add(Program program) {
  const std::uint32_t number = program.program();
  const std::uint32_t version = program.version();
  places_ |= program.places();
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

Result<Server::Target, ReplyStatus> Server::find(const oncrpc::CallHeader& header,
                                                 const Origin& origin) const {
  const auto present = [&](const Program& program) { return program.present_on(origin.transport); };
  const Program* program = programs_.find(header.program, header.version);
  if (program == nullptr || !present(*program))
    return Failure{programs_.missing(header.program, present)};
  const Program::Entry* entry = program->find(header.procedure);
  if (entry == nullptr) return Failure{ReplyStatus::accepted(AcceptStat::PROC_UNAVAIL)};
  return Target{entry, entry->binding != nullptr && entry->binding->non_idempotent &&
                           program->replay_policy() == ReplayPolicy::PerProcedure};
}

bool Server::authenticate_at_once(const oncrpc::CallHeader& header, IncomingCall& call,
                                  Authentication& to) const {
  if (call.who != nullptr) {
    to = std::move(*call.who);
    call.who.reset();
    return true;
  }
  Authenticator* const knows = authenticator(header.credential.flavor);
  if (knows == nullptr) return to.refuse(AuthStat::AUTH_REJECTEDCRED), true;
  return knows->authenticate_at_once(header, call, to);
}

void Server::on_arrival(IncomingCall& call) {
  xdr::Decoder decoder(call.payload);
  const Result<oncrpc::CallHeader, oncrpc::CallFault> header = oncrpc::decode_call(decoder);
  if (!header) return;
  Authenticator* const knows = authenticator(header->credential.flavor);
  if (knows == nullptr || !knows->minds_order()) return;
  auto who = std::make_shared<Authentication>();
  if (knows->authenticate_at_once(*header, call, *who)) call.who = std::move(who);
}

bool Server::is_worth_fetching(const Origin& origin, Bytes message) const {
  xdr::Decoder decoder(Buffer::borrow(message));
  const Result<oncrpc::CallHeader, oncrpc::CallFault> header = oncrpc::decode_call(decoder);
  if (!header) return false;
  const Authenticator* knows = authenticator(header->credential.flavor);
  return knows != nullptr && knows->may_accept(*header) && find(*header, origin);
}

// A caller that has to prove who it is has not done so yet, and may have transformed its arguments.
Buffer Server::place(const IncomingCall& call, std::uint32_t position,
                     std::uint32_t length) noexcept {
  if (!places_ || stopped_.load()) return {};
  try {
    xdr::Decoder decoder(call.payload);
    const auto header = oncrpc::decode_call(decoder);
    if (!header) return {};
    const oncrpc::AuthFlavor flavor = header->credential.flavor;
    const bool claims =
        flavor == oncrpc::AuthFlavor::AUTH_NONE || flavor == oncrpc::AuthFlavor::AUTH_SYS;
    const auto found = find(*header, *call.origin);
    if (!claims || !found) return {};
    return found->entry->handler->place(decoder, position, length);
  } catch (...) {
    return {};
  }
}

std::optional<std::uint64_t> Server::reply_max(const Origin& origin,
                                               const Buffer& call) const noexcept {
  try {
    xdr::Decoder decoder(call);
    const auto header = oncrpc::decode_call(decoder);
    if (!header) return 0;
    const auto found = find(*header, origin);
    if (!found) return 0;
    const Program::Entry& entry = *found->entry;
    if (const auto known = to_plain_arguments(*header, decoder); !known) return known.error();
    const auto results = entry.handler->results_max(decoder, entry.binding);
    if (!results) return std::nullopt;
    return oncrpc::kReplyHeaderSize + *results;
  } catch (...) {
    return 0;  // There is no memory to decode it; there will be none to serve it either.
  }
}

// One coroutine for the steps of every Call: a frame costs as much as all the checks. Exceptions of
// handlers, and failed allocations of the Server, end here (decision 0014).
Task<std::optional<OutgoingReply>> Server::serve(IncomingCall& call) {
  const Counted counted(*active_, call.origin->loop);
  if (stopped_.load()) co_return std::nullopt;
  CallWatch watch(observer_, call);
  Authentication who;
  bool wants_verifier = false;
  try {
    xdr::Decoder decoder(call.payload, call.items.empty() ? nullptr : &call.items);
    const Result<oncrpc::CallHeader, oncrpc::CallFault> header = oncrpc::decode_call(decoder);
    if (!header) co_return watch.end(refuse(header.error(), call));
    watch.begin(*header);
    wants_verifier = header->credential.flavor == oncrpc::AuthFlavor::RPCSEC_GSS;
    if (!authenticate_at_once(*header, call, who))
      who = co_await authenticator(header->credential.flavor)->authenticate(*header, call);
    if (who.verdict != Authentication::Verdict::Accepted)
      co_return watch.end(answer(header->xid, who, call));
    const Result<Target, ReplyStatus> found = find(*header, *call.origin);
    if (!found) co_return watch.end(refuse(header->xid, found.error(), call, who.protection.get()));
    const Program::Entry& entry = *found->entry;
    CallContext context(call, *header, who);
    context.worker_time_ = watch.worker_time();
    if (found->once_only || who.protection != nullptr) {
      std::optional<OutgoingReply> reply =
          co_await serve_kept(context, call, decoder, *found, who.protection.get(), watch);
      co_return watch.end(std::move(reply));
    }
    if (entry.binding != nullptr) call.items.allow(entry.binding->arguments.ids());
    xdr::Encoder encoder(results_of(entry));
    oncrpc::encode_success(encoder, header->xid);
    const HandlerOutcome outcome =
        co_await entry.handler->run(context, decoder, call.items, encoder);
    if (!outcome.encoded || !encoder.ok())
      co_return watch.end(reply_without_results(outcome, header->xid, call));
    OutgoingReply reply{std::move(encoder).finish(), results_of(entry), pairing_of(entry)};
    watch.end(reply);
    co_return std::move(reply);
  } catch (...) {
    // RFC 2203 5.3.3.1: what was not judged is not answered. Nothing has run, and the client
    // repeats it on another connection.
    if (wants_verifier && who.protection == nullptr) throw;
    trace_failed(call);
  }
  co_return watch.end(system_error(call, who.protection.get()));
}

Task<std::optional<OutgoingReply>> Server::serve_kept(CallContext& context, IncomingCall& call,
                                                      xdr::Decoder& decoder, Target target,
                                                      Protection* protection, CallWatch& watch) {
  const Program::Entry& entry = *target.entry;
  const std::uint32_t xid = context.header().xid;
  xdr::Decoder* arguments = &decoder;
  Buffer plain;
  std::optional<xdr::Decoder> unwrapped;
  if (protection != nullptr && protection->transforms()) {
    // RFC 8166 8.2.2.3: transformed arguments have no data items to be reduced.
    if (!call.items.empty())
      co_return refuse(xid, ReplyStatus::accepted(AcceptStat::GARBAGE_ARGS), call, protection);
    Result<Buffer, ReplyStatus> opened = co_await protection->unwrap(decoder.rest());
    if (!opened) co_return refuse(xid, opened.error(), call, protection);
    plain = *std::move(opened);
    context.unwrapped_ = &plain;
    watch.plain_arguments(plain);
    arguments = &unwrapped.emplace(plain);
  } else if (entry.binding != nullptr) {
    call.items.allow(entry.binding->arguments.ids());
  }
  std::optional<CallResults> results;
  if (target.once_only)
    results = co_await run_once(context, call, *arguments, entry);
  else
    results = co_await run(context, call, *arguments, entry);
  if (!results) co_return std::nullopt;
  watch.plain_results(*results);
  co_return co_await reply_of(xid, *std::move(results), entry, protection);
}

Task<std::optional<CallResults>> Server::run_once(CallContext& context, const IncomingCall& call,
                                                  xdr::Decoder& decoder,
                                                  const Program::Entry& entry) {
  const ReplayKey key = context.replay_key();
  ReplayCache::Admitted admitted = co_await replay_cache_.admit(key, context.loop());
  if (admitted.admission == ReplayCache::Admission::Replay) {
    trace_call(Reason::RpcReplayed, call);
    co_return std::move(admitted.results);
  }
  if (admitted.admission == ReplayCache::Admission::Drop) {
    trace_call(Reason::RpcDuplicateDropped, call);
    co_return std::nullopt;
  }
  Run running(replay_cache_, key, context.loop());
  std::optional<CallResults> results = co_await run(context, call, decoder, entry);
  running.finish(results);
  co_return results;
}

}  // namespace stag::rpc
