// What is claimed of a server that has lost it (nfs/session/opens.h), several claims at once. One
// that the server puts off, or does not answer, keeps no other one waiting.
#include <algorithm>
#include <new>
#include <utility>

#include "base/task_group.h"
#include "nfs/client/protocol/retrying_client.h"
#include "nfs/client/v4/claims.h"
#include "nfs/client/v4/session_client.h"
#include "nfs/client/v4/status.h"

namespace stag::nfs::client::nfs4 {

using Claim = session::Opens::Claim;
using Due = session::Opens::Due;

namespace {

constexpr std::size_t kClaimsAtOnce = 16;

// While it lives the claim is nobody's next one.
class Asking {
 public:
  Asking(session::Opens& opens, const Claim& claim) : opens_(opens), claim_(claim) {
    opens.begin(claim);
  }
  ~Asking() { opens_.end(claim_); }
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;

 private:
  session::Opens& opens_;
  const Claim& claim_;
};

}  // namespace

// Claims of one kind, until none is left, or the recovery has something else to do first.
struct SessionClient::Claiming {
  Claiming(Loop& loop, Duration lease, Which kind, OperationContext by, const ProtocolOptions& as)
      : which(kind),
        context(by),
        options(as),
        stopped(as.cancel, [this] { over.cancel(); }),
        retry(loop, cancelled_with(options, over), lease) {}
  static const ProtocolOptions& cancelled_with(ProtocolOptions& options, CancelSource& over) {
    options.cancel = over;
    return options;
  }
  bool goes_on() const { return !came && !over.cancelled(); }
  // Claims that the server does not answer would keep the recovery waiting.
  void end(Outcome<Attempt> why) {
    if (came) return;
    came = std::move(why);
    over.cancel();
  }

  const Which which;
  const OperationContext context;
  ProtocolOptions options;
  CancelSource over;
  const CancelCallback stopped;
  JukeboxRetry retry;
  std::size_t at_once = 1;
  TaskGroup claimers{};
  bool asked = false;
  bool pausing = false;                    // one of them, before it asks again for what was put off
  std::optional<Outcome<Attempt>> came{};  // why it has ended early
};

Request SessionClient::request_of(const Claim& claim) const {
  Request request;
  if (claim.kind == Claim::Kind::Free) {
    request.add(v4::OP_FREE_STATEID, &Op::opfree_stateid, {claim.stateid});
    return request;
  }
  request.put_handle(*opens_.file(claim.open));
  if (claim.kind == Claim::Kind::ReclaimLock) {
    v4::LOCK4args args = lock_of(claim);
    fill_in_lock(args, {0, claim.open, claim.owner, {}});
    request.add(v4::OP_LOCK, &Op::oplock, std::move(args));
    return request;
  }
  const bool reclaim = claim.kind == Claim::Kind::Reclaim;
  v4::OPEN4args args;
  args.share_access = opens_.access(claim.open) | v4::OPEN4_SHARE_ACCESS_WANT_NO_DELEG;
  args.claim.claim = reclaim ? v4::CLAIM_PREVIOUS : v4::CLAIM_FH;
  if (reclaim) args.claim.delegate_type() = v4::OPEN_DELEGATE_NONE;
  request.add_open(std::move(args), claim.open);
  return request;
}

// Others may have no right to what its holder has opened.
ProtocolOptions SessionClient::options_of(const Claim& claim,
                                          const ProtocolOptions& options) const {
  ProtocolOptions of_holder = options;
  if (claim.kind == Claim::Kind::Free) return of_holder;
  const std::shared_ptr<const session::Opener> opener = opens_.opener(claim.open);
  of_holder.credentials = opener ? opener->credentials : own_.credentials;
  return of_holder;
}

// A KDC that cannot be reached may be, a while later: until then the claims of others are made, and
// nobody waits for it longer than a grace period takes as a rule.
Outcome<SessionClient::Attempt> SessionClient::claim_failed(const Claim& claim, const Error& error,
                                                            const ProtocolOptions& of_holder,
                                                            const ProtocolOptions& options) {
  const TimePoint now = channel().loop().now();
  Unmade what = unmade(error, of_holder.credentials, options.credentials);
  if (what == Unmade::Told) return Failure{error};
  if (!put_off_since_) put_off_since_ = now;
  if (what == Unmade::PutOff && now - *put_off_since_ >= session_.lease()) what = Unmade::Refused;
  if (what == Unmade::PutOff) {
    const rpc::ClientSecurity* const security = of_holder.credentials.security();
    opens_.on_put_off(claim, [&](const session::Opener* other) {
      return (other != nullptr ? other->credentials : own_.credentials).security() == security;
    });
    return Attempt{Fate::Later, v4::NFS4ERR_DELAY};
  }
  opens_.on_refused(claim);
  return Attempt{Fate::Go, v4::NFS4_OK};
}

// One claim; refused, it is marked so, and recovery goes on with the next one.
Task<Outcome<SessionClient::Attempt>> SessionClient::take_claim(OperationContext context,
                                                                Claim claim,
                                                                const ProtocolOptions& options) {
  // Before it waits for a turn, in which the program may close what is claimed.
  Request request = request_of(claim);
  request.once_only(false);
  fill_in_owner(request);
  const ProtocolOptions of_holder = options_of(claim, options);
  Outcome<Taken> taken = co_await take_turn(context, options);
  if (!taken) co_return Failure{taken.error()};
  if (taken->fate != Fate::Go) co_return Attempt{taken->fate, v4::NFS4_OK};
  Outcome<Attempt> came = co_await send_in(std::move(taken->turn), context, request, of_holder);
  if (!came) co_return claim_failed(claim, came.error(), of_holder, options);
  if ((came->fate != Fate::Go && came->fate != Fate::Gone)) co_return came;
  if (came->fate == Fate::Go && asks_to_wait(came->status)) {
    came->fate = Fate::Later;
    co_return came;
  }
  std::optional<v4::stateid4> stateid;
  if (came->fate == Fate::Go && came->status == v4::NFS4_OK) {
    Reply reply(request);
    stateid = stateid_of(claim.kind, reply);
    if (auto* const opened = opened_by(claim.kind, reply))
      request.for_each_handle(
          [&](const Handle& file) { decline_delegation(file, opened->resok4().delegation); });
  }
  if (stateid)
    opens_.on_claimed(claim, *stateid);
  else
    opens_.on_refused(claim);
  came->fate = Fate::Go;
  co_return came;
}

Due SessionClient::due(Which which) const {
  return which == Which::Reclaims ? opens_.reclaim_due() : opens_.reopen_due();
}

// A client that ends is in no hurry. Claims without an answer leave slots to other calls. By 4.0
// locks are claimed by owners that number what they do.
std::size_t SessionClient::claims_at_once(Which which) const {
  if (ending_ || (minor_ == 0 && which == Which::Reclaims)) return 1;
  if (minor_ == 0) return kClaimsAtOnce;
  return std::clamp<std::size_t>(session_.slots().usable() / 2, 1, kClaimsAtOnce);
}

// What was put off has its turn again after a pause, which one of the claimers makes for all.
// False: there is nothing for this one to do.
Task<bool> SessionClient::await_due(Claiming& all) {
  const Due next = due(all.which);
  if (next == Due::None || all.pausing) co_return next == Due::Now;
  if (next == Due::Now || !all.asked) co_return true;
  if (!all.retry.left()) {
    all.end(Attempt{Fate::Later, v4::NFS4ERR_DELAY});
    co_return false;
  }
  all.pausing = put_off_ = true;
  recovered_.wake_all();
  co_await all.retry.pause();
  all.pausing = put_off_ = false;
  co_return all.goes_on();
}

// Claims one after the other, until there is none that others do not make already.
Task<void> SessionClient::claim_each(Claiming& all) {
  try {
    while (all.goes_on()) {
      const bool any = co_await await_due(all);
      if (!any) break;
      std::optional<Claim> claim =
          all.which == Which::Reclaims ? opens_.next_reclaim() : opens_.next_reopen();
      if (!claim) continue;
      all.asked = true;
      co_await claim_one(all, *std::move(claim));
      claim_more(all);
    }
  } catch (const std::bad_alloc&) {
    all.end(Attempt{Fate::Later, v4::NFS4ERR_DELAY});
  }
  recovered_.wake_all();
}

Task<void> SessionClient::claim_one(Claiming& all, Claim claim) {
  const Asking asking(opens_, claim);
  // Behind a pause others have their turn again, whether or not this one is answered.
  claim_more(all);
  OperationContext context = all.context;
  begin_to_wait(context);
  Outcome<Attempt> came = Attempt{};
  if (minor_ == 0)
    came = co_await take_claim_v40(context, claim, all.options);
  else
    came = co_await take_claim(context, claim, all.options);
  if (!is_known()) {
    const bool answered = came && (came->fate == Fate::Go || came->fate == Fate::Later);
    if (answered) came = Attempt{Fate::Again, v4::NFS4_OK};
    co_return all.end(std::move(came));
  }
  if (came && came->fate == Fate::Go) recovered_to_ = channel().loop().now();
  // One that was not heard of is behind the others in the next recovery, too.
  if (!came || came->fate == Fate::Later) opens_.put_off(claim);
  const bool goes_on =
      came && (came->fate == Fate::Go || came->fate == Fate::Later || came->fate == Fate::Again);
  if (!goes_on) all.end(std::move(came));
}

// Without memory for it those go on that there are.
void SessionClient::claim_more(Claiming& all) noexcept {
  try {
    while (all.goes_on() && all.claimers.running() < all.at_once) {
      const Due next = due(all.which);
      if (next == Due::None || (next == Due::Later && all.claimers.running() > 0)) return;
      all.claimers.add(claim_each(all));
    }
  } catch (const std::bad_alloc&) {
    if (all.claimers.running() == 0) all.end(Attempt{Fate::Later, v4::NFS4ERR_DELAY});
  }
}

// For whoever waits: there may be more to be claimed since, or something else to be done first.
void SessionClient::look_at_claims() noexcept {
  if (claiming_ == nullptr) return;
  if (is_known())
    claim_more(*claiming_);
  else
    claiming_->end(Attempt{Fate::Again, v4::NFS4_OK});
}

Task<Outcome<SessionClient::Attempt>> SessionClient::take_claims(Which which,
                                                                 OperationContext context,
                                                                 const ProtocolOptions& options) {
  Claiming all(channel().loop(), session_.lease(), which, context, options);
  all.at_once = claims_at_once(which);
  claiming_ = &all;
  claim_more(all);
  co_await all.claimers.join();
  claiming_ = nullptr;
  if (all.came) co_return *std::move(all.came);
  co_return Attempt{Fate::Go, v4::NFS4_OK};
}

}  // namespace stag::nfs::client::nfs4
