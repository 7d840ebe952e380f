#include "nfs/lock/lock_manager.h"

#include <algorithm>
#include <new>

#include "base/reason.h"

namespace stag::nfs::lock {

namespace {

using namespace nlm;

// SM_NOTIFY travels by UDP and is repeated until it is answered.
constexpr Duration kRepeatWindow = std::chrono::minutes(2);

// A status monitor tells of a start for a quarter of an hour (sm-notify -m 15). News that comes
// later with the number of the LOCKs is of another start: numbers repeat where a host begins from
// the same image each time.
constexpr Duration kNewsWindow = std::chrono::minutes(20);

// A host names itself by its full name or by the first label of it.
bool same_host(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  return b.starts_with(a) && !a.empty() && (a.size() == b.size() || b[a.size()] == '.');
}

// Whether this is the news that `known` has already.
bool is_told(const ClientStates::Known& known, std::int32_t state, TimePoint now) {
  const auto& told = known.restart;
  return told && told->state == state && now - told->when <= kRepeatWindow;
}

// The same, and it has it from then on.
bool is_repeated(ClientStates::Known& known, std::int32_t state, TimePoint now) {
  if (is_told(known, state, now)) return true;
  known.restart = {state, now};
  return false;
}

nlm4_stats status_of(LockOutcome outcome) {
  switch (outcome) {
    case LockOutcome::Granted:
      return NLM4_GRANTED;
    case LockOutcome::Blocked:
      return NLM4_BLOCKED;
    case LockOutcome::Full:
      return NLM4_DENIED_NOLOCKS;
    case LockOutcome::Denied:
      break;
  }
  return NLM4_DENIED;
}

}  // namespace

// As many as may have anything are known.
LockManager::LockManager(const LockLimits& limits) : table_(limits), states_(limits.in_all) {}
LockManager::~LockManager() = default;

LockManager::Tested LockManager::test(const LockRequest& request, TimePoint now) const {
  const std::scoped_lock lock(mutex_);
  if (in_grace(now)) return {NLM4_DENIED_GRACE_PERIOD, std::nullopt};
  auto holder = table_.test(request);
  if (!holder && sharing_ != nullptr) holder = sharing_->holder(request);
  if (!holder && programs_ != nullptr) holder = programs_->holder(request);
  if (!holder) return {};
  return {NLM4_DENIED, std::move(holder)};
}

LockManager::Begun::Begun(LockManager& manager, LockUnderWay lock) : manager_(manager) {
  const std::scoped_lock guard(manager_.mutex_);
  place_ = manager_.under_way_.insert(manager_.under_way_.end(), std::move(lock));
}

LockManager::Begun::~Begun() {
  const std::scoped_lock guard(manager_.mutex_);
  manager_.under_way_.erase(place_);
}

template <class Which>
void LockManager::withdraw_which(Which which) noexcept {
  for (LockUnderWay& one : under_way_)
    if (which(one)) one.withdrawn = true;
}

void LockManager::withdraw(const std::string& file_handle, const Owner& owner,
                           std::optional<Range> range) {
  const std::scoped_lock lock(mutex_);
  withdraw_which([&](const LockUnderWay& one) {
    if (one.range.has_value() != range.has_value()) return false;
    const bool within =
        !range || (range->first <= one.range->first && one.range->last <= range->last);
    return within && *one.owner == owner && one.file_handle == file_handle;
  });
}

nlm4_stats LockManager::lock(const LockArgs& args, TimePoint now) {
  std::unique_lock lock(mutex_);
  if (args.under_way != nullptr && args.under_way->withdrawn) return NLM4_DENIED;
  // After the grace period another client may have had the lock and released it, so a late reclaim
  // is refused; NLM has no other status for that.
  if (in_grace(now) != args.reclaim) return NLM4_DENIED_GRACE_PERIOD;
  const bool released = release_older(args.request.owner->client, args.client_state);
  std::optional<nlm4_stats> status;
  const Notices notices = carry_out(lock, [&] { status = lock_now(args, now); });
  if (released) freed(nullptr);
  if (!status) throw std::bad_alloc();
  if (notices.lapsed.empty() || status != NLM4_DENIED) return *status;
  // The expired NFSv4 clients that conflicted have been removed by now.
  lock.lock();
  status.reset();
  carry_out(lock, [&] { status = lock_now(args, now); });
  if (!status) throw std::bad_alloc();
  return *status;
}

// With the mutex, which it gives up. Where memory runs out in `work` there are notices all the
// same.
template <class Work>
LockManager::Notices LockManager::carry_out(std::unique_lock<std::mutex>& lock, Work work) {
  try {
    work();
  } catch (const std::bad_alloc&) {  // the caller sees that it has no status
  }
  Notices notices = take_notices();
  lock.unlock();
  deliver(notices);
  return notices;
}

// A host's first LOCK after its restart may come before its SM_NOTIFY, which then is no news. True
// when it had anything.
bool LockManager::release_older(const Client& client, std::int32_t state) {
  withdraw_which([&](const LockUnderWay& one) {
    return one.state != 0 && one.state < state && one.owner->client == client;
  });
  const ClientStates::Known* const known = states_.find(client);
  if (known == nullptr || known->state == 0 || state <= known->state) return false;
  if (!table_.knows(client)) return false;
  trace(Reason::LockClientRestarted, client.address, client.name);
  release_which([&](const Client& other) { return other == client; });
  return true;
}

nlm4_stats LockManager::lock_now(const LockArgs& args, TimePoint now) {
  // A lock held before the restart excluded all others, so a reclaim never blocks.
  const bool wait = args.block && !args.reclaim && static_cast<bool>(on_grant_);
  const Client& client = args.request.owner->client;
  // A client that is told of a failure has got nothing: what comes behind asks for no memory.
  Blocked waits;
  if (wait) waits.emplace(Ticket{0}, args.params);
  const bool is_stranger = states_.find(client) == nullptr;
  const bool has_some = table_.knows(client);
  ClientStates::Known& known = states_.of(client);
  take_grants();
  Befores befores = befores_without(args.request.file, *args.request.owner, args.request.range);
  if (sharing_ != nullptr) sharing_->begin();
  const LockTable::Answer answer =
      table_.lock(args.request, wait, now, args.reclaim ? Claim::Reclaimed : Claim::New);
  if (answer.outcome == LockOutcome::Blocked && answer.ticket != 0) {
    auto one = waits.extract(waits.begin());
    one.key() = answer.ticket;
    blocked_.erase(answer.ticket);
    blocked_.insert(std::move(one));
  } else if (answer.outcome == LockOutcome::Granted) {
    blocked_.erase(answer.ticket);
    // A client that repeats a request which was granted has the lock now, whether or not it
    // received NLM_GRANTED.
    forget_pending(args.request.file, *args.request.owner, args.request.range, std::move(befores));
    if (args.reclaim) grace_->claimed();
  }
  // Strangers who are refused leave nothing here. The number of what the client has stays though a
  // LOCK with a lower one comes late: the next one with the right number is no restart.
  if (answer.outcome == LockOutcome::Granted || answer.ticket != 0) {
    if (!has_some || args.client_state > known.state) {
      known.state = args.client_state;
      known.since = now;
    }
  } else if (is_stranger) {
    states_.forget(client);
  }
  return status_of(answer.outcome);
}

nlm4_stats LockManager::unlock(const FileKey& file, const Owner& owner, Range range) {
  std::unique_lock lock(mutex_);
  take_grants();
  Befores befores = befores_without(file, owner, range);
  const bool done = table_.unlock(file, owner, range);
  if (done) forget_pending(file, owner, range, std::move(befores));
  Notices notices = take_notices();
  lock.unlock();
  freed(&file, range);
  deliver(notices);
  return status_of(done ? LockOutcome::Granted : LockOutcome::Full);
}

nlm4_stats LockManager::share(const FileKey& file, const Share& share, bool reclaim, TimePoint now,
                              const LockUnderWay* under_way) {
  std::unique_lock lock(mutex_);
  if (under_way != nullptr && under_way->withdrawn) return NLM4_DENIED;
  if (in_grace(now) != reclaim) return NLM4_DENIED_GRACE_PERIOD;
  std::optional<nlm4_stats> status;
  const Notices notices = carry_out(lock, [&] { status = share_now(file, share); });
  if (!status) throw std::bad_alloc();
  if (notices.lapsed.empty()) return *status;
  // As in lock().
  lock.lock();
  status.reset();
  carry_out(lock, [&] { status = share_now(file, share); });
  if (!status) throw std::bad_alloc();
  return *status;
}

nlm4_stats LockManager::share_now(const FileKey& file, const Share& share) {
  if (sharing_ != nullptr) {
    sharing_->begin();
    if (sharing_->conflicts(file, share)) return NLM4_DENIED;
  }
  return status_of(table_.share(file, share));
}

void LockManager::unshare(const FileKey& file, const Owner& owner) {
  std::unique_lock lock(mutex_);
  table_.unshare(file, owner);
  Notices notices = take_notices();
  lock.unlock();
  deliver(notices);
}

bool LockManager::release(const Client& client) {
  std::unique_lock lock(mutex_);
  withdraw_which([&](const LockUnderWay& one) { return one.owner->client == client; });
  // Releasing looks at all locks, which a stranger must not cause by one Call.
  if (!table_.knows(client)) return false;
  release_which([&](const Client& other) { return other == client; });
  Notices notices = take_notices();
  lock.unlock();
  freed(nullptr);
  deliver(notices);
  return true;
}

bool LockManager::restarted(const std::string& address, const std::string& name, std::int32_t state,
                            TimePoint now) {
  std::unique_lock lock(mutex_);
  take_grants();  // the news is not to be taken for old when memory runs out over it
  const auto each_named_here = [&](auto use) {
    states_.each_at(
        address, [&](const std::string& other) { return same_host(other, name); }, use);
  };
  bool told_before = false;
  each_named_here([&](const ClientStates::Known& known) {
    told_before = told_before || is_told(known, state, now);
  });
  std::vector<Client> gone = clients_of(address, name, told_before);
  for (const Client& client : gone) states_.of(client);  // asks for memory
  const auto is_one_of = [&gone](const Client& client) {
    return std::binary_search(gone.begin(), gone.end(), client);
  };
  // Also where the news is none: one that has come since is late.
  withdraw_which([&](const LockUnderWay& one) {
    return one.state != 0 && one.state < state && is_one_of(one.owner->client);
  });
  std::erase_if(gone, [&](const Client& client) {
    ClientStates::Known* const known = states_.find(client);
    if (known == nullptr) return false;
    const bool repeated = is_repeated(*known, state, now);
    const bool newer = state != 0 && known->state == state && now - known->since <= kNewsWindow;
    return newer || repeated;
  });
  // A host that has nothing has restarted, too.
  each_named_here([&](ClientStates::Known& known) { is_repeated(known, state, now); });
  // SM_NOTIFY is not authenticated: all locks are looked at only when some will be released.
  if (gone.empty()) return false;
  withdraw_which([&](const LockUnderWay& one) {
    return (state == 0 || one.state != state) && is_one_of(one.owner->client);
  });
  release_which(is_one_of);
  Notices notices = take_notices();
  lock.unlock();
  freed(nullptr);
  deliver(notices);
  return true;
}

// Those that have anything there, or have asked for it, in order.
std::vector<Client> LockManager::clients_at(const std::string& address) const {
  std::vector<Client> here = table_.clients_at(address);
  for (const LockUnderWay& one : under_way_)
    if (one.owner->client.address == address) here.push_back(one.owner->client);
  std::ranges::sort(here);
  here.erase(std::unique(here.begin(), here.end()), here.end());
  return here;
}

// The clients that restarted, in order, when a host at `address` calls itself `name`.
// `is_repeated`: one that is known there by this name has told of this restart already.
std::vector<Client> LockManager::clients_of(const std::string& address, const std::string& name,
                                            bool is_repeated) const {
  const auto is_named = [&](const std::string& other) { return same_host(other, name); };
  std::vector<Client> here = clients_at(address);
  // A host with several addresses may notify from another one, also from one where it had something
  // before; an address that names one of two namesakes is not believed. Told again, and perhaps by
  // less of its name, it means itself.
  if (here.empty()) {
    if (is_repeated) return here;
    if (auto only = table_.only_client(is_named)) here.push_back(*std::move(only));
    return here;
  }
  const auto is_of_name = [&](const Client& client) { return is_named(client.name); };
  // The host of this name may have nothing any more: Linux tells of a restart by its full name and
  // then by the first label.
  const bool by_name = std::ranges::any_of(here, is_of_name) || states_.any_at(address, is_named);
  if (by_name) std::erase_if(here, [&](const Client& client) { return !is_named(client.name); });
  return here;
}

void LockManager::clear() {
  Notices dropped;
  {
    const std::scoped_lock lock(mutex_);
    withdraw_which([](const LockUnderWay&) { return true; });
    release_which([](const Client&) { return true; });
    dropped = take_notices();
  }
  freed(nullptr);
}

bool LockManager::knows(const std::string& address) const {
  const std::scoped_lock lock(mutex_);
  return table_.knows(address);
}

std::size_t LockManager::size() const {
  const std::scoped_lock lock(mutex_);
  return table_.size();
}

std::map<Client, std::size_t> LockManager::clients() const {
  const std::scoped_lock lock(mutex_);
  return table_.counts();
}

std::vector<FileKey> LockManager::files() const {
  const std::scoped_lock lock(mutex_);
  return table_.files();
}

std::vector<Held> LockManager::held(const FileKey& file) const {
  const std::scoped_lock lock(mutex_);
  return table_.held(file);
}

// All of it or, where memory runs out, nothing.
void LockManager::release_which(const LockTable::Which& which) {
  take_grants();
  table_.release(which, [&](Ticket ticket) { blocked_.erase(ticket); });
  for (auto at = pending_.begin(); at != pending_.end();) {
    const auto& [ticket, pending] = *at++;
    if (which(pending.grant.request.owner->client)) take_pending(ticket);
  }
}

// What there is no memory for stays, and is for retry() to take.
LockManager::Notices LockManager::take_notices() {
  Notices notices;
  bool left = table_.take_unswept();
  try {
    take_grants();
  } catch (const std::bad_alloc&) {
    left = true;
  }
  notices.grants.swap(undelivered_);
  if (left) overdue_.store(true);
  notices.retry = left;
  if (sharing_ != nullptr) {
    notices.lapsed = sharing_->take_lapsed();
    sharing_->note(table_.size() != 0, !blocked_.empty());
  }
  if (programs_ != nullptr) {
    notices.holds = programs_->take_holds();
    notices.retry |= programs_->take_met() && !blocked_.empty();
  }
  return notices;
}

// What has been done is done, whether or not there is memory to tell of it. What is not told is for
// retry(), which asks again what those are in the way of whose end failed here.
void LockManager::deliver(Notices& notices) {
  try {
    for (; !notices.grants.empty(); notices.grants.pop_front())
      on_grant_(notices.grants.front().client, notices.grants.front().ticket);
    if (sharing_ != nullptr) sharing_->end(notices.lapsed);
  } catch (const std::bad_alloc&) {
    const std::scoped_lock lock(mutex_);
    undelivered_.splice(undelivered_.end(), notices.grants);
    notices.retry = true;
    overdue_.store(true);
  }
  try {
    if (notices.retry && on_met_) on_met_();
  } catch (const std::bad_alloc&) {
    overdue_.store(true);
  }
}

void LockManager::freed(const FileKey* file, const Range& range) {
  if (programs_ != nullptr) programs_->freed(file, range);
}

void LockManager::share_with(state::Gate& gate) {
  sharing_ = std::make_unique<Sharing>(gate, mutex_, table_,
                                       [this](const FileKey* file) { recheck(file); });
  ask_elsewhere();
}

void LockManager::share_with_programs(LocalLockTable& local, UniqueFunction<void()> met) {
  programs_ = std::make_unique<LocalPrograms>(local, mutex_, table_);
  on_met_ = std::move(met);
  ask_elsewhere();
}

// Programs are asked last: they are kept out from then on.
void LockManager::ask_elsewhere() {
  table_.ask_elsewhere([this](const LockRequest& request) {
    return (sharing_ != nullptr && sharing_->conflicts(request)) ||
           (programs_ != nullptr && programs_->conflicts(request));
  });
}

bool LockManager::retry() {
  std::unique_lock lock(mutex_);
  overdue_.store(false);
  table_.recheck_all();
  Notices notices = take_notices();
  lock.unlock();
  const bool again = std::exchange(notices.retry, false);
  deliver(notices);
  return again;
}

void LockManager::recheck(const FileKey* file) {
  std::unique_lock lock(mutex_);
  if (file == nullptr)
    table_.recheck_all();
  else
    table_.recheck(*file);
  Notices notices = take_notices();
  lock.unlock();
  deliver(notices);
}

}  // namespace stag::nfs::lock
