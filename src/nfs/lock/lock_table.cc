#include "nfs/lock/lock_table.h"

#include <algorithm>
#include <new>

namespace stag::nfs::lock {

// Linux asks every half a minute.
constexpr Duration kAsksWithin = std::chrono::minutes(2);
// The part of a limit that each address may have anew where others hold more than the limit.
constexpr std::size_t kLittle = 128;

std::optional<Held> LockTable::test(const LockRequest& request) const {
  const auto found = files_.find(request.file);
  if (found == files_.end()) return std::nullopt;
  return found->second.locks.conflict(*request.owner, request.range, request.exclusive);
}

bool LockTable::conflicts(const File& file, const LockRequest& request) const {
  return file.locks.conflict(*request.owner, request.range, request.exclusive) ||
         (elsewhere_ && elsewhere_(request));
}

void LockTable::recheck(const FileKey& key) {
  const auto found = files_.find(key);
  if (found != files_.end() && !found->second.waiters.empty()) sweep(key, found->second, Range{});
}

void LockTable::recheck_all() {
  for (auto& [key, file] : files_)
    if (!file.waiters.empty()) sweep(key, file, Range{});
}

// Whether setting this lock downgrades exclusive bytes of its owner to shared.
bool LockTable::frees(const File& file, const LockRequest& request) {
  if (request.exclusive) return false;
  const std::vector<Held> own = file.locks.of(*request.owner, request.range);
  return std::any_of(own.begin(), own.end(), [](const Held& held) { return held.exclusive; });
}

LockTable::Answer LockTable::lock(const LockRequest& request, bool wait, TimePoint now,
                                  Claim claim) {
  now_ = std::max(now_, now);
  File& file = files_[request.file];
  try {
    const Answer answer = lock_in(file, request, wait, claim);
    tidy(request.file);
    return answer;
  } catch (...) {
    tidy(request.file);
    throw;
  }
}

LockTable::Answer LockTable::lock_in(File& file, const LockRequest& request, bool wait,
                                     Claim claim) {
  Answer answer;
  if (conflicts(file, request)) {
    if (wait) answer = enqueue(file, request);
  } else {
    const bool freed = frees(file, request);
    const bool set = assign(file, request.owner, request.range, request.exclusive, claim);
    answer.outcome = set ? LockOutcome::Granted : LockOutcome::Full;
    if (set) answer.ticket = leave_queue(file, request);
    if (set && freed) sweep(request.file, file, request.range);
  }
  return answer;
}

LockTable::Answer LockTable::enqueue(File& file, const LockRequest& request) {
  const WaitsFor wanted{request.range, request.exclusive, request.owner};
  if (const auto place = file.tickets.find(wanted); place != file.tickets.end()) {
    waiter_of(file, place->second)->asked = now_;
    return {LockOutcome::Blocked, place->second};
  }
  const Client& client = request.owner->client;
  if (!has_place(file, client)) return {LockOutcome::Blocked, 0};
  file.waiters.push_back({last_ticket_ + 1, request.owner, request.range, request.exclusive, now_});
  try {
    file.tickets.emplace(wanted, last_ticket_ + 1);
    count(file, client, 1, true);
  } catch (...) {
    file.tickets.erase(wanted);
    file.waiters.pop_back();
    throw;
  }
  ++last_ticket_;
  return {LockOutcome::Blocked, last_ticket_};
}

std::optional<Ticket> LockTable::cancel(const LockRequest& request) {
  const auto found = files_.find(request.file);
  if (found == files_.end()) return std::nullopt;
  const Ticket ticket = leave_queue(found->second, request);
  tidy(request.file);
  if (ticket == 0) return std::nullopt;
  return ticket;
}

// The ticket that the request had; 0 when it was not blocked.
Ticket LockTable::leave_queue(File& file, const LockRequest& request) {
  const auto place = file.tickets.find({request.range, request.exclusive, request.owner});
  if (place == file.tickets.end()) return 0;
  const Ticket ticket = place->second;
  remove_waiter(file, Waiter{ticket, request.owner, request.range, request.exclusive, {}});
  count(file, request.owner->client, -1, true);
  return ticket;
}

std::vector<LockTable::Waiter>::iterator LockTable::waiter_of(File& file, Ticket ticket) {
  return std::lower_bound(file.waiters.begin(), file.waiters.end(), ticket,
                          [](const Waiter& one, Ticket other) { return one.ticket < other; });
}

void LockTable::remove_waiter(File& file, const Waiter& waiter) {
  file.tickets.erase({waiter.range, waiter.exclusive, waiter.owner});
  file.waiters.erase(waiter_of(file, waiter.ticket));
}

bool LockTable::is_silent(const Waiter& waiter) const {
  return now_ - waiter.asked > kAsksWithin;
}

void LockTable::forget_silent(const std::string& address, TimePoint now, const Left& left) {
  now_ = std::max(now_, now);
  if (!knows(address)) return;
  for (auto at = files_.begin(); at != files_.end();) {
    const auto here = at++;
    release_waiters(
        here->second,
        [&](const Waiter& waiter) {
          return waiter.owner->client.address == address && is_silent(waiter);
        },
        left);
    if (here->second.size() == 0) files_.erase(here);
  }
}

bool LockTable::unlock(const FileKey& key, const Owner& owner, Range range) {
  const auto found = files_.find(key);
  if (found == files_.end()) return true;
  File& file = found->second;
  const OwnerPtr holder = file.locks.holder(owner);
  if (holder == nullptr) return true;
  if (!assign(file, holder, range, std::nullopt, Claim::Held)) return false;
  sweep(key, file, range);
  tidy(key);
  return true;
}

void LockTable::settled(const Grant& grant) {
  const auto found = files_.find(grant.request.file);
  if (found == files_.end() || found->second.unsettled == 0) return;
  --found->second.unsettled;
  count(found->second, grant.request.owner->client, -1, true);
  tidy(grant.request.file);
}

void LockTable::revert(const LockRequest& granted, RangeParts before) {
  const auto found = files_.find(granted.file);
  if (found == files_.end()) return;
  File& file = found->second;
  const auto is_taken = [&](const RangePart& part) {
    return part.exclusive == true &&
           conflicts(file, {granted.file, granted.owner, part.range, true});
  };
  std::erase_if(before, is_taken);
  carry_out(file, granted.owner, file.locks.plan_revert(granted.owner, before));
  sweep(granted.file, file, granted.range);
  tidy(granted.file);
}

// Gives `range` the mode `exclusive`, or none, for this owner. False, and nothing changed, when
// that would be more locks than there may be.
bool LockTable::assign(File& file, const OwnerPtr& owner, Range range,
                       std::optional<bool> exclusive, Claim claim) {
  const RangeLocks::Change change = file.locks.plan(owner, range, exclusive);
  const auto signed_size = [](const auto& list) {
    return static_cast<std::ptrdiff_t>(list.size());
  };
  const std::ptrdiff_t more = signed_size(change.come) - signed_size(change.gone);
  if (more > 0 && !has_capacity(file, owner->client, static_cast<std::size_t>(more), claim))
    return false;
  carry_out(file, owner, change);
  return true;
}

// All of it or, where memory runs out, nothing.
void LockTable::carry_out(File& file, const OwnerPtr& owner, const RangeLocks::Change& change) {
  const auto come = static_cast<std::ptrdiff_t>(change.come.size());
  // New locks are counted first, so that the client stays known throughout.
  count(file, owner->client, come);
  try {
    file.locks.apply(change);
  } catch (...) {
    count(file, owner->client, -come);
    throw;
  }
  count(file, owner->client, -static_cast<std::ptrdiff_t>(change.gone.size()));
}

// What was freed is free: the owner that freed it is not told otherwise because there is no memory
// for what others get.
void LockTable::sweep(const FileKey& key, File& file, Range freed) {
  try {
    grant_waiters(key, file, freed);
  } catch (const std::bad_alloc&) {
    unswept_ = true;
  }
}

// Grants the lock to the waiters for `freed` that do not conflict any more. The grant of a shared
// lock may turn exclusive bytes of its owner into shared ones, which frees more bytes: then the
// queue is swept once more, but a bounded number of times, because a waiter that is not reached
// asks again.
void LockTable::grant_waiters(const FileKey& key, File& file, Range freed) {
  constexpr int kPasses = 16;
  bool more = true;
  for (int pass = 0; more && pass < kPasses; ++pass) {
    more = grant_those(key, file, freed, false);
    more = grant_those(key, file, freed, true) || more;
  }
}

// True when that has freed more bytes.
bool LockTable::grant_those(const FileKey& key, File& file, Range& freed, bool silent) {
  bool more = false;
  for (std::size_t i = 0; i < file.waiters.size();) {
    if (!file.waiters[i].range.overlaps(freed) || is_silent(file.waiters[i]) != silent) {
      ++i;
      continue;
    }
    const Waiter waiter = file.waiters[i];
    const LockRequest request{key, waiter.owner, waiter.range, waiter.exclusive};
    const bool frees_more = frees(file, request);
    if (!promote(file, waiter, request)) {
      ++i;
      continue;
    }
    if (frees_more) freed = hull(freed, waiter.range);
    more = more || frees_more;
  }
  return more;
}

// False when the waiter still conflicts or its client is at its limit; the waiter stays in the
// queue.
bool LockTable::promote(File& file, const Waiter& waiter, const LockRequest& request) {
  if (conflicts(file, request)) return false;
  std::list<Grant> grant;
  grant.push_back({waiter.ticket, request, file.locks.parts(*waiter.owner, waiter.range)});
  if (!assign(file, waiter.owner, waiter.range, waiter.exclusive, Claim::New)) return false;
  // The waiter's place stays counted until the grant is settled.
  remove_waiter(file, waiter);
  ++file.unsettled;
  granted_.splice(granted_.end(), grant);
  return true;
}

bool LockTable::share_conflict(const FileKey& key, std::uint32_t access,
                               std::uint32_t denied) const {
  const auto found = files_.find(key);
  return found != files_.end() &&
         std::ranges::any_of(found->second.shares, [&](const Share& share) {
           return (share.denied & access) != 0 || (denied & share.access) != 0;
         });
}

LockOutcome LockTable::share(const FileKey& key, const Share& share) {
  File& file = files_[key];
  Share* mine = nullptr;
  for (Share& other : file.shares) {
    if (*other.owner == *share.owner)
      mine = &other;
    else if ((other.denied & share.access) != 0 || (share.denied & other.access) != 0)
      return LockOutcome::Denied;
  }
  if (mine != nullptr) {
    *mine = share;
    return LockOutcome::Granted;
  }
  const bool fits = has_capacity(file, share.owner->client, 1, Claim::New);
  try {
    if (fits) file.shares.reserve(file.shares.size() + 1), count(file, share.owner->client, 1);
  } catch (...) {
    tidy(key);
    throw;
  }
  if (fits) file.shares.push_back(share);
  tidy(key);
  return fits ? LockOutcome::Granted : LockOutcome::Full;
}

void LockTable::unshare(const FileKey& key, const Owner& owner) {
  const auto found = files_.find(key);
  if (found == files_.end()) return;
  const std::size_t gone = std::erase_if(found->second.shares,
                                         [&](const Share& share) { return *share.owner == owner; });
  count(found->second, owner.client, -static_cast<std::ptrdiff_t>(gone));
  tidy(key);
}

// Asks for no memory: what becomes of the locks of a host that is gone is not known otherwise.
void LockTable::release(const Which& which, const Left& left) {
  for (auto at = files_.begin(); at != files_.end();) {
    const auto here = at++;
    if (!release_from(here->second, which, left)) continue;
    sweep(here->first, here->second, Range{});
    if (here->second.size() == 0) files_.erase(here);
  }
}

template <class Gone>
bool LockTable::release_waiters(File& file, Gone gone, const Left& left) {
  return std::erase_if(file.waiters, [&](const Waiter& waiter) {
           if (!gone(waiter)) return false;
           file.tickets.erase({waiter.range, waiter.exclusive, waiter.owner});
           left(waiter.ticket);
           count(file, waiter.owner->client, -1, true);
           return true;
         }) != 0;
}

// False when there was nothing to release.
bool LockTable::release_from(File& file, const Which& which, const Left& left) {
  bool any = false;
  const auto of_those = [&](const Owner& owner) { return which(owner.client); };
  file.locks.release(of_those, [&](const Owner& owner, std::size_t locks) {
    any = true;
    count(file, owner.client, -static_cast<std::ptrdiff_t>(locks));
  });
  std::erase_if(file.shares, [&](const Share& share) {
    if (!of_those(*share.owner)) return false;
    any = true;
    count(file, share.owner->client, -1);
    return true;
  });
  const auto gone = [&](const Waiter& waiter) { return of_those(*waiter.owner); };
  return release_waiters(file, gone, left) || any;
}

std::vector<Client> LockTable::clients_at(const std::string& address) const {
  std::vector<Client> here;
  for (auto at = counts_.lower_bound(Client{address, {}});
       at != counts_.end() && at->first.address == address; ++at)
    here.push_back(at->first);
  return here;
}

std::optional<Client> LockTable::only_client(const IsName& is_right) const {
  const Client* only = nullptr;
  for (const auto& [client, count] : counts_) {
    if (!is_right(client.name)) continue;
    if (only != nullptr) return std::nullopt;
    only = &client;
  }
  return only == nullptr ? std::nullopt : std::optional(*only);
}

std::vector<Held> LockTable::held(const FileKey& file) const {
  const auto found = files_.find(file);
  if (found == files_.end()) return {};
  return found->second.locks.all();
}

std::vector<FileKey> LockTable::files() const {
  std::vector<FileKey> keys;
  keys.reserve(files_.size());
  for (const auto& [key, file] : files_) keys.push_back(key);
  return keys;
}

bool LockTable::has_capacity(const File& file, const Client& client, std::size_t more,
                             Claim claim) const {
  const std::size_t times = claim == Claim::New ? 1 : 2;
  const auto fits = [&](std::size_t own, std::size_t all, std::size_t limit) {
    const bool little = own + more <= limit / kLittle;
    return state::leaves_enough(own, all, more, (little ? 2 : times) * limit);
  };
  const auto found = counts_.find(client);
  const std::size_t of_client = found == counts_.end() ? 0 : found->second;
  const std::size_t of_address = account_of(accounts_, client.address).all;
  // As with states of version 4: an address that reclaims what it never had leaves room for what
  // all others had.
  const std::size_t times_of_address = claim == Claim::Held ? 2 : 1;
  return of_client + more <= times * limits_.of_client &&
         of_address + more <= times_of_address * limits_.of_address &&
         fits(account_of(file.accounts, client.address).all, file.size(), limits_.of_file) &&
         fits(of_address, total_, limits_.in_all);
}

bool LockTable::has_place(const File& file, const Client& client) const {
  return has_capacity(file, client, 1, Claim::New) &&
         account_of(accounts_, client.address).places < limits_.waiters_of_address &&
         state::leaves_enough<std::size_t>(account_of(file.accounts, client.address).places,
                                           file.places(), 1, limits_.waiters_of_file);
}

LockTable::Account LockTable::account_of(const Accounts& accounts, const std::string& address) {
  const auto found = accounts.find(address);
  return found == accounts.end() ? Account{} : found->second;
}

// All of it or, where memory runs out, nothing; what becomes less asks for none. `places`: they are
// such.
void LockTable::count(File& file, const Client& client, std::ptrdiff_t change, bool places) {
  if (change == 0) return;
  const auto more = static_cast<std::size_t>(change);
  const auto add = [&](Accounts& accounts, Accounts::iterator at, std::size_t by) {
    at->second.all += by;
    if (places) at->second.places += by;
    if (at->second.all == 0) accounts.erase(at);
  };
  const auto in_file = file.accounts.try_emplace(client.address).first;
  auto in_all = accounts_.end();
  auto own = counts_.end();
  try {
    in_all = accounts_.try_emplace(client.address).first;
    own = counts_.try_emplace(client).first;
  } catch (...) {
    if (in_all != accounts_.end()) add(accounts_, in_all, 0);
    add(file.accounts, in_file, 0);
    throw;
  }
  own->second += more;
  total_ += more;
  if (own->second == 0) counts_.erase(own);
  add(accounts_, in_all, more);
  add(file.accounts, in_file, more);
}

void LockTable::tidy(const FileKey& key) {
  const auto found = files_.find(key);
  if (found != files_.end() && found->second.size() == 0) files_.erase(found);
}

}  // namespace stag::nfs::lock
