#include "nfs/lock/lock_manager.h"

#include <algorithm>

#include "base/reason.h"

namespace stag::nfs::lock {

namespace {

using namespace nlm;

// Notifications travel by UDP and are repeated until they are answered.
constexpr Duration kSameNews = std::chrono::minutes(2);
constexpr std::size_t kMaxHeard = 4096;
constexpr std::size_t kMaxStates = 4096;

// A host is called by its full name or by the first part of it.
bool same_host(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  return b.starts_with(a) && !a.empty() && (a.size() == b.size() || b[a.size()] == '.');
}

bool same(const LockRequest& a, const LockRequest& b) {
  return a.file == b.file && a.range == b.range && a.exclusive == b.exclusive &&
         *a.owner == *b.owner;
}

nlm4_stats status_of(LockOutcome outcome, const Client& client) {
  switch (outcome) {
    case LockOutcome::Granted:
      return NLM4_GRANTED;
    case LockOutcome::Blocked:
      return NLM4_BLOCKED;
    case LockOutcome::Full:
      trace(Reason::LocksTooMany, client.address, client.name);
      return NLM4_DENIED_NOLOCKS;
    case LockOutcome::Denied:
      break;
  }
  return NLM4_DENIED;
}

}  // namespace

LockManager::LockManager(const LockLimits& limits) : table_(limits) {}
LockManager::~LockManager() = default;

LockManager::Tested LockManager::test(const LockRequest& request, TimePoint now) const {
  const std::scoped_lock lock(mutex_);
  if (in_grace(now)) return {NLM4_DENIED_GRACE_PERIOD, std::nullopt};
  auto holder = table_.test(request);
  if (!holder && sharing_ != nullptr) holder = sharing_->holder(request);
  if (!holder) return {};
  return {NLM4_DENIED, std::move(holder)};
}

nlm4_stats LockManager::lock(const LockArgs& ask, TimePoint now) {
  std::unique_lock lock(mutex_);
  // A reclaim that comes late may be beaten by somebody who has come and gone: it is refused the
  // same way, for clients know no other word for it.
  if (in_grace(now) != ask.reclaim) return NLM4_DENIED_GRACE_PERIOD;
  const nlm4_stats status = lock_now(ask);
  const News news = take_news();
  lock.unlock();
  tell(news);
  if (news.lapsed.empty() || status != NLM4_DENIED) return status;
  // Whoever was in the way has most often gone by now.
  lock.lock();
  const nlm4_stats again = lock_now(ask);
  const News later = take_news();
  lock.unlock();
  tell(later);
  return again;
}

nlm4_stats LockManager::lock_now(const LockArgs& ask) {
  // What was held before a restart was held by nobody else: a reclaim has nothing to wait for.
  const bool wait = ask.block && !ask.reclaim && static_cast<bool>(on_grant_);
  if (sharing_ != nullptr) sharing_->begin();
  const LockTable::Answer answer = table_.lock(ask.request, wait);
  if (answer.outcome == LockOutcome::Blocked) {
    wishes_[answer.ticket] = ask.wish;
  } else if (answer.outcome == LockOutcome::Granted) {
    wishes_.erase(answer.ticket);
    // Who asks again for what was granted has it now, whether or not the news reached him.
    forget_pending(ask.request.file, *ask.request.owner, ask.request.range);
  }
  const Client& client = ask.request.owner->client;
  if (answer.outcome == LockOutcome::Granted || answer.outcome == LockOutcome::Blocked)
    note_state(client, ask.client_state);
  return status_of(answer.outcome, client);
}

nlm4_stats LockManager::cancel(const LockRequest& request) {
  std::unique_lock lock(mutex_);
  bool found = false;
  if (const auto ticket = table_.cancel(request)) {
    wishes_.erase(*ticket);
    found = true;
  }
  // It may have been granted while the client gave up.
  for (const Ticket ticket : pending_of(request.file, *request.owner)) {
    if (!same(pending_.at(ticket).grant.request, request)) continue;
    table_.revert(take_pending(ticket));
    found = true;
  }
  const News news = take_news();
  lock.unlock();
  tell(news);
  return found ? NLM4_GRANTED : NLM4_DENIED;
}

nlm4_stats LockManager::unlock(const FileKey& file, const Owner& owner, Range range) {
  std::unique_lock lock(mutex_);
  const bool done = table_.unlock(file, owner, range);
  if (done) forget_pending(file, owner, range);
  const News news = take_news();
  lock.unlock();
  tell(news);
  return status_of(done ? LockOutcome::Granted : LockOutcome::Full, owner.client);
}

nlm4_stats LockManager::share(const FileKey& file, const Share& share, bool reclaim,
                              TimePoint now) {
  std::unique_lock lock(mutex_);
  if (in_grace(now) != reclaim) return NLM4_DENIED_GRACE_PERIOD;
  const nlm4_stats status = share_now(file, share);
  const News news = take_news();
  lock.unlock();
  tell(news);
  return status;
}

nlm4_stats LockManager::share_now(const FileKey& file, const Share& share) {
  if (sharing_ != nullptr) {
    sharing_->begin();
    if (sharing_->in_the_way(file, share)) return NLM4_DENIED;
  }
  return status_of(table_.share(file, share), share.owner->client);
}

void LockManager::unshare(const FileKey& file, const Owner& owner) {
  std::unique_lock lock(mutex_);
  table_.unshare(file, owner);
  const News news = take_news();
  lock.unlock();
  tell(news);
}

void LockManager::release(const Client& client) {
  std::unique_lock lock(mutex_);
  // To look at all locks is not to be had for the price of a Call.
  if (!table_.knows(client)) return;
  release_which([&](const Client& other) { return other == client; });
  const News news = take_news();
  lock.unlock();
  tell(news);
}

bool LockManager::restarted(const std::string& address, const std::string& name, std::int32_t state,
                            TimePoint now) {
  std::unique_lock lock(mutex_);
  std::vector<Client> gone = clients_of(address, name);
  std::erase_if(gone, [&](const Client& client) {
    const auto known = states_.find(client);
    const bool newer = state != 0 && known != states_.end() && known->second == state;
    return newer || heard_before(client, state, now);
  });
  // Anybody may say anything: to look at all locks is for those whose word releases some.
  if (gone.empty()) return false;
  release_which(
      [&](const Client& client) { return std::binary_search(gone.begin(), gone.end(), client); });
  const News news = take_news();
  lock.unlock();
  tell(news);
  return true;
}

// Whom a host's word about itself is about, in order.
std::vector<Client> LockManager::clients_of(const std::string& address,
                                            const std::string& name) const {
  const auto is_named = [&](const std::string& other) { return same_host(other, name); };
  std::vector<Client> here = table_.clients_at(address);
  // A host with several addresses may call from another one; but never take the word of a
  // stranger's for one of two namesakes.
  if (here.empty()) {
    if (auto only = table_.only_client(is_named)) here.push_back(*std::move(only));
    return here;
  }
  const bool by_name = std::any_of(here.begin(), here.end(),
                                   [&](const Client& client) { return is_named(client.name); });
  if (by_name) std::erase_if(here, [&](const Client& client) { return !is_named(client.name); });
  return here;
}

void LockManager::clear() {
  const std::scoped_lock lock(mutex_);
  release_which([](const Client&) { return true; });
  static_cast<void>(take_news());
}

std::optional<PendingGrant> LockManager::pending(Ticket ticket) const {
  const std::scoped_lock lock(mutex_);
  const auto found = pending_.find(ticket);
  if (found == pending_.end()) return std::nullopt;
  return found->second;
}

void LockManager::offering(Ticket ticket) {
  const std::scoped_lock lock(mutex_);
  const auto found = pending_.find(ticket);
  if (found == pending_.end()) return;
  PendingGrant& pending = found->second;
  pending.unanswered = pending.unanswered || pending.offered;
  pending.offered = true;
}

void LockManager::not_yet(Ticket ticket) {
  const std::scoped_lock lock(mutex_);
  const auto found = pending_.find(ticket);
  if (found != pending_.end()) found->second.offered = false;
}

void LockManager::answered(Ticket ticket, bool wanted) {
  const std::optional<PendingGrant> offered = pending(ticket);
  if (offered) settle(ticket, wanted || offered->unanswered);
}

bool LockManager::settle(Ticket ticket, bool wanted) {
  std::unique_lock lock(mutex_);
  if (!pending_.contains(ticket)) return false;
  const Grant grant = take_pending(ticket);
  if (!wanted) table_.revert(grant);
  const News news = take_news();
  lock.unlock();
  tell(news);
  return true;
}

bool LockManager::is_pending(Ticket ticket) const {
  const std::scoped_lock lock(mutex_);
  return pending_.contains(ticket);
}

bool LockManager::knows(const std::string& address) const {
  const std::scoped_lock lock(mutex_);
  return table_.knows(address);
}

std::size_t LockManager::size() const {
  const std::scoped_lock lock(mutex_);
  return table_.size();
}

std::size_t LockManager::pending_count() const {
  const std::scoped_lock lock(mutex_);
  return pending_.size();
}

// Of a grant that is pending: it is not any more.
Grant LockManager::take_pending(Ticket ticket) {
  auto taken = pending_.extract(ticket);
  Grant grant = std::move(taken.mapped().grant);
  const auto here = pending_in_.find(grant.request.file);
  const auto [first, last] = here->second.equal_range(*grant.request.owner);
  here->second.erase(
      std::find_if(first, last, [&](const auto& entry) { return entry.second == ticket; }));
  if (here->second.empty()) pending_in_.erase(here);
  table_.settled(grant);
  return grant;
}

LockManager::Tickets LockManager::pending_of(const FileKey& file, const Owner& owner) const {
  Tickets tickets;
  const auto found = pending_in_.find(file);
  if (found == pending_in_.end()) return tickets;
  const auto [first, last] = found->second.equal_range(owner);
  for (auto at = first; at != last; ++at) tickets.push_back(at->second);
  return tickets;
}

// What the owner does to these bytes now counts, not what he waited for.
void LockManager::forget_pending(const FileKey& file, const Owner& owner, Range range) {
  for (const Ticket ticket : pending_of(file, owner))
    if (pending_.at(ticket).grant.request.range.overlaps(range)) take_pending(ticket);
}

void LockManager::note_state(const Client& client, std::int32_t state) {
  if (states_.size() >= kMaxStates && !states_.contains(client))
    std::erase_if(states_, [&](const auto& entry) { return !table_.knows(entry.first); });
  if (states_.size() < kMaxStates || states_.contains(client)) states_[client] = state;
}

void LockManager::release_which(const LockTable::Which& which) {
  for (const Ticket ticket : table_.release(which)) wishes_.erase(ticket);
  Tickets gone;
  for (const auto& [ticket, pending] : pending_)
    if (which(pending.grant.request.owner->client)) gone.push_back(ticket);
  for (const Ticket ticket : gone) take_pending(ticket);
}

// Only of clients that have locks, of which there is an end: strangers leave nothing here.
bool LockManager::heard_before(const Client& client, std::int32_t state, TimePoint now) {
  const auto is_old = [&](const Heard& heard) { return now - heard.when > kSameNews; };
  const auto found = heard_.find(client);
  if (found != heard_.end() && found->second.state == state && !is_old(found->second)) return true;
  if (found == heard_.end() && heard_.size() >= kMaxHeard)
    std::erase_if(heard_, [&](const auto& entry) { return is_old(entry.second); });
  if (found != heard_.end() || heard_.size() < kMaxHeard) heard_[client] = {state, now};
  return false;
}

LockManager::News LockManager::take_news() {
  News news;
  for (Grant& grant : table_.take_grants()) {
    const Ticket ticket = grant.ticket;
    news.grants.push_back({grant.request.owner->client, ticket});
    PendingGrant pending{std::move(grant), {}};
    if (auto wish = wishes_.extract(ticket)) pending.wish = std::move(wish.mapped());
    pending_in_[pending.grant.request.file].emplace(pending.grant.request.owner, ticket);
    pending_.emplace(ticket, std::move(pending));
  }
  if (sharing_ != nullptr) {
    news.lapsed = sharing_->take_lapsed();
    sharing_->note(table_.size() != 0, !wishes_.empty());
  }
  return news;
}

void LockManager::tell(const News& news) {
  for (const GrantNotice& one : news.grants) on_grant_(one.client, one.ticket);
  if (sharing_ != nullptr) sharing_->end(news.lapsed);
}

void LockManager::share_with(state::Gate& gate, const FsidMap& stores) {
  sharing_ = std::make_unique<Sharing>(gate, stores, mutex_, table_,
                                       [this](const FileKey* file) { recheck(file); });
  table_.ask_elsewhere(
      [this](const LockRequest& request) { return sharing_->in_the_way(request); });
}

void LockManager::recheck(const FileKey* file) {
  std::unique_lock lock(mutex_);
  if (file == nullptr)
    table_.recheck_all();
  else
    table_.recheck(*file);
  const News news = take_news();
  lock.unlock();
  tell(news);
}

}  // namespace stag::nfs::lock
