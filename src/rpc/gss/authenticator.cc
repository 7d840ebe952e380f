#include "rpc/gss/authenticator.h"

#include <array>

#include "base/address.h"
#include "rpc/gss/protection.h"

namespace stag::rpc {
namespace {

using gss::Credential;
using gss::Major;
using oncrpc::AuthFlavor;
using oncrpc::AuthStat;

// Of a credential that cannot be read, the version may still be one that is not served.
AuthStat refusal_of(Bytes body) {
  const bool other_version = body.size() >= 4 && load_be<std::uint32_t>(body.data()) != 1;
  return other_version ? AuthStat::AUTH_REJECTEDCRED : AuthStat::AUTH_BADCRED;
}

// RFC 2203 5.2.3.1, 5.3.3.2: the checksum of a number in network order.
Major sign(gss::Context& context, std::uint32_t number, gss::Mic& to) {
  std::array<std::byte, 4> word;
  store_be(word.data(), number);
  const Bytes message = word;
  return context.get_mic(gss::Pieces(&message, 1), to);
}

Authentication answer(const gss::InitRes& results) {
  Authentication made;
  made.verdict = Authentication::Verdict::Answered;
  made.results = gss::encode_init_res(results);
  return made;
}

Authentication refused(AuthStat why) {
  Authentication made;
  made.refuse(why);
  return made;
}

// Answers who was not refused, only late: a client that hears of no context begins another one.
constexpr Major kBeginAnew = Major::NO_CONTEXT;

// RFC 2203 5.2.3.1: the results of a failure have neither handle nor token.
Authentication failed(Major major, std::uint32_t minor = 0) {
  return answer({.major = major, .minor = minor});
}

bool is_gone(const IncomingCall& call) {
  return call.origin->connection != nullptr && call.origin->connection->down();
}

// Takes a context out of the table unless it came to be kept.
class Unfinished {
 public:
  Unfinished(ContextTable& table, ServerContext& context) : table_(table), context_(&context) {}
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  ~Unfinished() {
    if (context_ != nullptr) table_.remove(*context_);
  }
  void keep() { context_ = nullptr; }

 private:
  ContextTable& table_;
  ServerContext* context_;
};

}  // namespace

std::unique_ptr<Authenticator> rpcsec_gss(GssServerOptions options) {
  return std::make_unique<GssAuthenticator>(std::move(options));
}

GssAuthenticator::GssAuthenticator(GssServerOptions options)
    : options_(std::move(options)), contexts_({options_.contexts, options_.half_open}) {
  STAG_CHECK(options_.acceptor != nullptr);
}

bool GssAuthenticator::may_accept(const oncrpc::CallHeader& header) const {
  const std::optional<Credential> credential = gss::decode_credential(header.credential.body);
  if (!credential || credential->version != gss::kVersion) return false;
  return credential->creation() || contexts_.find(credential->handle) != nullptr;
}

bool GssAuthenticator::authenticate_at_once(const oncrpc::CallHeader& header,
                                            const IncomingCall& call, Authentication& to) {
  const std::optional<Credential> credential = gss::decode_credential(header.credential.body);
  if (!credential) return to.refuse(refusal_of(header.credential.body)), true;
  if (credential->version == gss::kVersion && credential->creation()) return false;
  const std::shared_ptr<ServerContext> context = contexts_.find(credential->handle);
  const bool known = context != nullptr && context->established.load(std::memory_order_acquire);
  if (credential->version != gss::kVersion) {
    // RFC 2203 5.3.3.3 of a context that has another version, 5.1 of none.
    to.refuse(known ? AuthStat::AUTH_BADCRED : AuthStat::AUTH_REJECTEDCRED);
    return true;
  }
  if (!known) return to.refuse(AuthStat::RPCSEC_GSS_CREDPROBLEM), true;
  if (!context->lock.try_lock()) return false;
  const AwaitedLock::Held use(context->lock);
  judge(context, *credential, header, call, to);
  return true;
}

Task<Authentication> GssAuthenticator::authenticate(const oncrpc::CallHeader& header,
                                                    const IncomingCall& call) {
  const std::optional<Credential> credential = gss::decode_credential(header.credential.body);
  STAG_CHECK(credential.has_value());
  if (credential->creation()) co_return co_await create(*credential, header, call);
  Authentication made;
  const std::shared_ptr<ServerContext> context = contexts_.find(credential->handle);
  if (context == nullptr) {
    made.refuse(AuthStat::RPCSEC_GSS_CREDPROBLEM);
    co_return made;
  }
  co_await context->lock.lock(*call.origin->loop);
  const AwaitedLock::Held use(context->lock);
  judge(context, *credential, header, call, made);
  co_return made;
}

// RFC 2203 5.3.3.1. What costs least is looked at first.
void GssAuthenticator::judge(const std::shared_ptr<ServerContext>& context,
                             const Credential& credential, const oncrpc::CallHeader& header,
                             const IncomingCall& call, Authentication& to) {
  ServerContext& of = *context;
  const TimePoint now = call.origin->loop->now();
  if (now >= of.expires) {
    contexts_.remove(of);
    return to.refuse(AuthStat::RPCSEC_GSS_CTXPROBLEM);
  }
  if (header.verifier.flavor != AuthFlavor::RPCSEC_GSS) return to.refuse(AuthStat::AUTH_BADVERF);
  if (credential.seq_num <= gss::kMaxSeq && !of.window.is_new(credential.seq_num)) {
    to.verdict = Authentication::Verdict::Dropped;
    to.reason = Reason::RpcSequenceRefused;
    return;
  }
  const Bytes message = call.payload.bytes().first(oncrpc::credential_end(header));
  const Major verified = of.gss->verify_mic(gss::Pieces(&message, 1), header.verifier.body);
  if (verified != Major::COMPLETE)
    return to.refuse(verified == Major::CONTEXT_EXPIRED ? AuthStat::RPCSEC_GSS_CTXPROBLEM
                                                        : AuthStat::RPCSEC_GSS_CREDPROBLEM);
  gss::Mic mic;
  if (credential.seq_num > gss::kMaxSeq ||
      sign(*of.gss, credential.seq_num, mic) != Major::COMPLETE)
    return to.refuse(AuthStat::RPCSEC_GSS_CTXPROBLEM);
  to.caller = of.caller;
  to.caller.flavor = gss::pseudo_flavor(credential.service);
  if (credential.control())
    to.protection = std::make_unique<GssVerifier>(mic);
  else
    to.protection =
        std::make_unique<GssProtection>(mic, context, credential, options_, *call.origin->loop);
  // Last, as nothing fails any more.
  of.window.accept(credential.seq_num);
  of.used(now);
  if (credential.control()) destroy(of, header, to);
}

// RFC 2203 5.4: it is answered as a data request is that has no results.
void GssAuthenticator::destroy(ServerContext& context, const oncrpc::CallHeader& header,
                               Authentication& to) {
  if (header.procedure != 0) return to.refuse(AuthStat::AUTH_BADCRED);
  contexts_.remove(context);
  to.verdict = Authentication::Verdict::Answered;
}

Task<Authentication> GssAuthenticator::create(const Credential& credential,
                                              const oncrpc::CallHeader& header,
                                              const IncomingCall& call) {
  Loop& loop = *call.origin->loop;
  // RFC 8166 8.2.2: control messages have nothing that may be reduced.
  if (header.procedure != 0 || !call.items.empty()) co_return refused(AuthStat::AUTH_BADCRED);
  const bool first = credential.procedure == gss::Procedure::INIT;
  if (first != credential.handle.empty()) co_return refused(AuthStat::AUTH_BADCRED);
  const auto token = gss::decode_init_arg(call.payload.bytes().subspan(header_size(header)));
  if (!token) co_return failed(Major::DEFECTIVE_TOKEN);
  std::shared_ptr<ServerContext> context;
  if (first)
    context = contexts_.begin(call.origin->peer.host, options_.acceptor->begin(), loop.now());
  else
    context = contexts_.find(credential.handle);
  // Nothing but its address proves whose context it is as long as it is not established.
  if (context == nullptr || context->address != call.origin->peer.host)
    co_return failed(Major::NO_CONTEXT);
  co_await context->lock.lock(loop);
  const AwaitedLock::Held use(context->lock);
  if (context->established.load(std::memory_order_acquire)) co_return failed(Major::NO_CONTEXT);
  context->xid = header.xid;
  Unfinished unfinished(contexts_, *context);
  const gss::Step step = co_await accept(*context, *token, call);
  if (step.major == Major::CONTINUE_NEEDED) {
    if (first) contexts_.add_half_open(context);
    unfinished.keep();
    co_return answer({context->handle, step.major, step.minor, gss::SequenceWindow::kAnnounced,
                      step.token.bytes()});
  }
  if (step.major != Major::COMPLETE) {
    if (!is_gone(call)) trace(step.error.reason, to_string(call.origin->peer), step.error.detail);
    co_return failed(step.major, step.minor);
  }
  const Major welcome = co_await admit(*context, loop);
  if (welcome != Major::COMPLETE) co_return failed(welcome);
  Authentication made = established(context, step, loop.now());
  if (made.protection != nullptr) unfinished.keep();
  co_return made;
}

// Counts a token in its lane, which is there as long as it has any.
class GssAuthenticator::InLane {
 public:
  InLane(GssAuthenticator& of, const void* client) : of_(of) {
    decltype(lanes_) fresh;
    fresh.try_emplace(client);
    auto node = fresh.extract(fresh.begin());
    const BriefLock held(of_.lanes_mutex_);
    auto placed = of_.lanes_.insert(std::move(node));
    at_ = placed.position;
    before_ = at_->second.tokens++;
    node = std::move(placed.node);
  }
  InLane(const InLane&) = delete;
  InLane& operator=(const InLane&) = delete;
  ~InLane() {
    decltype(lanes_)::node_type unused;
    const BriefLock held(of_.lanes_mutex_);
    if (--at_->second.tokens == 0) unused = of_.lanes_.extract(at_);
  }
  bool has_room() const { return before_ < kWaiting; }
  AwaitedLock& turn() { return at_->second.turn; }

 private:
  GssAuthenticator& of_;
  decltype(lanes_)::iterator at_;
  std::uint32_t before_ = 0;
};

Task<gss::Step> GssAuthenticator::accept(ServerContext& context, Bytes token,
                                         const IncomingCall& call) {
  gss::Step busy{.major = kBeginAnew};
  busy.error.reason = Reason::WorkersBusy;
  // The server accepts one token of an address at a time: a client that sends many waits for
  // itself. Connections come and go, and with lanes of their own those of one address would be in
  // all.
  InLane lane(*this, context.client);
  if (!lane.has_room()) co_return busy;
  Loop& loop = *call.origin->loop;
  co_await lane.turn().lock(loop);
  const AwaitedLock::Held held(lane.turn());
  // Calls outlive their connections, of which a client may make any number one after the other.
  if (is_gone(call)) co_return busy;
  const auto work = [&]() -> gss::Step { return context.gss->step(token); };
  Executor* const executor = options_.tokens != nullptr ? options_.tokens.get() : options_.executor;
  co_return co_await offloaded_to(executor, context.client, loop, work, std::move(busy),
                                  token.size());
}

// COMPLETE where the principal may have a context, with the ids that it has.
Task<Major> GssAuthenticator::admit(ServerContext& context, Loop& loop) {
  auto name = std::make_shared<const std::string>(context.gss->peer());
  context.caller.name = name;
  if (!options_.ids) co_return Major::COMPLETE;
  Eventual<Result<UserIds, NoUserIds>> asked = options_.ids(loop, *name, context.client);
  const Result<UserIds, NoUserIds> ids = co_await std::move(asked);
  if (!ids) {
    trace(Reason::GssPrincipalRefused, context.address, *name);
    co_return ids.error() == NoUserIds::NotNow ? kBeginAnew : Major::UNAUTHORIZED;
  }
  context.caller.uid = ids->uid;
  context.caller.gid = ids->gid;
  context.caller.gids = ids->gids;
  co_return Major::COMPLETE;
}

// RFC 2203 5.2.3.1: the verifier is the checksum of the window.
Authentication GssAuthenticator::established(const std::shared_ptr<ServerContext>& made,
                                             const gss::Step& step, TimePoint now) {
  ServerContext& context = *made;
  constexpr std::uint32_t kNoEnd = 0xffffffff;
  if (context.gss->lifetime() != kNoEnd)
    context.expires = now + std::chrono::seconds(context.gss->lifetime());
  gss::Mic mic;
  const Major signed_as = sign(*context.gss, gss::SequenceWindow::kAnnounced, mic);
  if (signed_as != Major::COMPLETE) return failed(signed_as);
  // Its client begins anew.
  if (!contexts_.establish(made, now)) return failed(Major::NO_CONTEXT);
  Authentication done = answer({context.handle, Major::COMPLETE, step.minor,
                                gss::SequenceWindow::kAnnounced, step.token.bytes()});
  done.protection = std::make_unique<GssVerifier>(mic);
  return done;
}

}  // namespace stag::rpc
