#include "nfs/lock/callback_sender.h"

#include <algorithm>
#include <set>

#include "base/pause.h"
#include "base/reason.h"
#include "nfs/lock/versions.h"
#include "nfs/proto/nsm.h"

namespace stag::nfs::lock {

namespace {

using namespace std::chrono_literals;

constexpr Duration kCallTimeout = 5s;
constexpr Duration kFirstPause = 1s;
constexpr Duration kLongestPause = 30s;
// A live client polls within half a minute anyway; the lock of a dead one blocks others.
constexpr Duration kOfferFor = 3min;
constexpr Duration kNotifyFor = 15min;
// A host that does not answer takes five seconds: even with the most records (4096), all of dead
// hosts, the last is tried within the grace period.
constexpr std::size_t kNotifiedAtOnce = 512;

}  // namespace

rpc::Client CallbackSender::client_of(rpc::Channel& channel) const {
  // RFC 1813 6.1.1: AUTH_UNIX for all procedures but NULL.
  return rpc::Client(channel, {}, rpc::Credentials::sys(host_name_, 0, 0));
}

rpc::CallOptions CallbackSender::options() {
  rpc::CallOptions options;
  options.timeout = kCallTimeout;
  options.cancel = stop_;
  return options;
}

void CallbackSender::granted(Ticket ticket) {
  loop_.post([this, ticket] {
    if (stop_.cancelled()) return;
    try {
      enqueue(ticket);
    } catch (...) {  // its client asks again
      dropped_ = true;
      manager_.give_up(ticket);
      throw;
    }
  });
}

// For a client that does not ask again.
void CallbackSender::resume_granting() {
  if (stop_.cancelled() || !std::exchange(dropped_, false)) return;
  try {
    std::set<Ticket> known;
    for (const auto& [route, queue] : deliveries_)
      known.insert(queue.tickets.begin(), queue.tickets.end());
    for (const Ticket ticket : manager_.pending_tickets())
      if (!known.contains(ticket)) enqueue(ticket);
  } catch (...) {
    dropped_ = true;
    throw;
  }
}

void CallbackSender::enqueue(Ticket ticket) {
  const auto pending = manager_.pending(ticket);
  if (!pending) return;
  const Route route{pending->grant.request.owner->client.address, pending->params.called_at};
  const auto [at, fresh] = deliveries_.try_emplace(route);
  Deliveries& queue = at->second;
  try {
    queue.tickets.push_back(ticket);
    if (fresh) return tasks_.add(deliver(route));
  } catch (...) {  // nothing would empty it
    if (fresh) deliveries_.erase(at);
    throw;
  }
  if (queue.tickets.size() <= queue.most) return;
  std::erase_if(queue.tickets, [this](Ticket one) { return !manager_.is_pending(one); });
  queue.most = std::max<std::size_t>(64, 2 * queue.tickets.size());
}

Task<void> CallbackSender::deliver(Route route) {
  Deliveries& queue = deliveries_[route];
  const AtEnd forgotten([&] {
    dropped_ = dropped_ || !queue.tickets.empty();
    deliveries_.erase(route);
  });
  Duration wait = kFirstPause;
  TimePoint give_up_at = loop_.now() + kOfferFor;
  while (!queue.tickets.empty() && !stop_.cancelled()) {
    bool progress = false;
    try {
      progress = co_await deliver_once(queue, route);
    } catch (const std::bad_alloc&) {  // there may be some when it is tried again
    }
    if (queue.tickets.empty() || stop_.cancelled()) break;
    if (progress) {
      wait = kFirstPause;
      give_up_at = loop_.now() + kOfferFor;
    } else if (loop_.now() >= give_up_at)
      try {
        give_up(queue, route.host);
        break;
      } catch (const std::bad_alloc&) {  // the rest when it is tried again
      }
    co_await pause(loop_, wait, stop_);
    wait = std::min(2 * wait, kLongestPause);
  }
}

// True when at least one grant was settled.
Task<bool> CallbackSender::deliver_once(Deliveries& queue, const Route& route) {
  const auto first = manager_.pending(queue.tickets.front());
  const std::uint32_t version = first ? first->params.version : nlm::NLMPROC4_GRANTED::version;
  const auto use = [&](rpc::Channel& channel) { return offer_all(channel, queue); };
  Task<rpc::ConnectedChannel> reaching =
      peers_.reach(route, nlm::NLMPROC4_GRANTED::program, version, stop_);
  const rpc::CallResult<bool> progress = co_await rpc::with_channel(std::move(reaching), use);
  co_return progress.ok() && *progress;
}

Task<bool> CallbackSender::offer_all(rpc::Channel& channel, Deliveries& queue) {
  bool progress = false;
  // granted() may remove settled tickets meanwhile.
  std::size_t left = queue.tickets.size();
  for (; left > 0 && !queue.tickets.empty() && !stop_.cancelled(); --left) {
    const Ticket ticket = queue.tickets.front();
    queue.tickets.push_back(ticket);  // first: it takes memory
    queue.tickets.pop_front();
    Verdict verdict = Verdict::Unreachable;
    try {
      verdict = co_await offer(channel, ticket);
    } catch (const std::bad_alloc&) {
    }
    if (verdict == Verdict::Settled) {
      progress = true;
      std::erase(queue.tickets, ticket);
    }
    if (verdict == Verdict::Unreachable) break;
  }
  co_return progress;
}

Task<CallbackSender::Verdict> CallbackSender::offer(rpc::Channel& channel, Ticket ticket) {
  const std::optional<PendingGrant> pending = manager_.pending(ticket);
  if (!pending) co_return Verdict::Settled;
  Verdict verdict = Verdict::Open;
  if (pending->params.version == 4)
    verdict = co_await offer_as<Nlm4>(channel, *pending, ticket);
  else if (pending->params.version == 3)
    verdict = co_await offer_as<Nlm3>(channel, *pending, ticket);
  else
    verdict = co_await offer_as<Nlm1>(channel, *pending, ticket);
  co_return verdict;
}

template <class Version>
Task<CallbackSender::Verdict> CallbackSender::offer_as(rpc::Channel& channel,
                                                       const PendingGrant& pending, Ticket ticket) {
  rpc::Client client = client_of(channel);
  typename Version::TestArgs args;
  std::byte cookie[8];
  store_be(cookie, ticket);
  args.cookie = Rope::copy_of(cookie);
  describe(pending, args);
  manager_.offering(ticket);
  if (pending.params.by_message) {
    // The answer is a message too; grant_answered() (nlm.cc) receives it.
    const auto sent = co_await client.call<typename Version::GrantedMsg>(args, options());
    if (!sent && sent.error().reason != Reason::TimedOut) co_return Verdict::Unreachable;
    co_return manager_.is_pending(ticket) ? Verdict::Open : Verdict::Settled;
  }
  const auto answer = co_await client.call<typename Version::Granted>(args, options());
  if (!answer) co_return Verdict::Unreachable;
  const auto stat = static_cast<nlm::nlm4_stats>(answer->stat.stat);
  // It restarts itself and asks for time.
  if (stat == nlm::NLM4_DENIED_GRACE_PERIOD) {
    manager_.not_yet(ticket);
    co_return Verdict::Open;
  }
  manager_.answered(ticket, stat == nlm::NLM4_GRANTED);
  co_return Verdict::Settled;
}

void CallbackSender::give_up(Deliveries& queue, const std::string& address) {
  // First: a grant that is taken back goes to the next one that waits.
  manager_.forget_silent(address, loop_.now());
  for (; !queue.tickets.empty(); queue.tickets.pop_front())
    if (manager_.give_up(queue.tickets.front())) trace(Reason::LockGrantUndelivered, address);
}

bool CallbackSender::begin_answer(const std::string& host) {
  if (answers_ >= kMostAnswers) return false;
  std::size_t& to_host = answers_to_[host];
  if (to_host > 0 && to_host >= (kMostAnswers - answers_) / kPartOfFree) return false;
  ++to_host;
  ++answers_;
  return true;
}

void CallbackSender::end_answer(const std::string& host) {
  --answers_;
  const auto found = answers_to_.find(host);
  if (--found->second == 0) answers_to_.erase(found);
}

void CallbackSender::notify_restart() {
  loop_.post([this] { resume_notifying(); });
}

void CallbackSender::resume_notifying() {
  if (!notifying_ && !stop_.cancelled() && records_.any_unnotified()) tasks_.add(notify_all());
}

// Upkeep begins it again where there is no memory for it, or for a pause.
Task<void> CallbackSender::notify_all() {
  notifying_ = true;
  const AtEnd over([this] { notifying_ = false; });
  for (;;) {
    begin_round();
    try {
      co_await notify_round();
    } catch (const std::bad_alloc&) {  // there may be some in the next
    }
    if (stop_.cancelled() || !records_.any_unnotified()) break;
    if (records_.state() != notified_state_) continue;
    co_await pause(loop_, notify_pause_, stop_);
    notify_pause_ = std::min(2 * notify_pause_, kLongestPause);
  }
}

// A host that is to be notified of another restart has the full time again.
void CallbackSender::begin_round() {
  const std::int32_t state = records_.state();
  if (std::exchange(notified_state_, state) == state) return;
  notify_until_ = loop_.now() + kNotifyFor;
  notify_pause_ = kFirstPause;
}

Task<void> CallbackSender::notify_round() {
  const std::vector<std::string> hosts = records_.unnotified();
  TaskGroup round;
  for (const std::string& host : hosts) {
    if (stop_.cancelled()) break;
    co_await round.at_most(kNotifiedAtOnce - 1);
    try {
      round.add(notify(host));
    } catch (const std::bad_alloc&) {  // in the next round
    }
  }
  co_await round.join();
  if (loop_.now() >= notify_until_) co_await give_up_notifying(notified_state_);
}

// A host for which that fails is notified in the next round once more.
Task<void> CallbackSender::give_up_notifying(std::int32_t state) {
  for (const std::string& host : records_.unnotified()) {
    if (stop_.cancelled() || records_.state() != state) break;
    trace(Reason::NsmNotifyFailed, host);
    co_await offloaded_to(
        records_.worker(), this, loop_, [&] { return records_.give_up(host, state).ok(); }, false);
  }
}

Task<void> CallbackSender::notify(std::string host) {
  const std::int32_t state = records_.state();
  const std::string former = records_.former_name(host);
  const auto use = [&](rpc::Channel& channel) { return notify_by(channel, former, state); };
  // A status monitor goes by the name in the message, whatever address it comes from.
  Task<rpc::ConnectedChannel> reaching =
      peers_.reach({host, {}}, nsm::SM_NOTIFY::program, nsm::SM_NOTIFY::version, stop_);
  const rpc::CallResult<bool> heard = co_await rpc::with_channel(std::move(reaching), use);
  if (heard.ok() && *heard) records_.notified(host, state);
}

Task<bool> CallbackSender::notify_by(rpc::Channel& channel, const std::string& former,
                                     std::int32_t state) {
  bool heard = co_await notify_as(channel, host_name_, state);
  if (heard && !former.empty() && former != host_name_)
    heard = co_await notify_as(channel, former, state);
  co_return heard;
}

// A monitor passes over a name that it does not know.
Task<bool> CallbackSender::notify_as(rpc::Channel& channel, const std::string& name,
                                     std::int32_t state) {
  rpc::Client client = client_of(channel);
  nsm::stat_chge news;
  news.mon_name = name;
  news.state = state;
  const auto heard = co_await client.call<nsm::SM_NOTIFY>(news, options());
  co_return heard.ok();
}

Task<void> CallbackSender::stop() {
  stop_.cancel();
  co_await tasks_.join();
}

}  // namespace stag::nfs::lock
