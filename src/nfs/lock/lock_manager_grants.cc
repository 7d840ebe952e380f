// Of LockManager: the grants that clients have not acknowledged. One owner may have several that
// overlap (two threads of a process wait): each has in `before` what would be there without it,
// which is another's lock where that was granted first, and nothing where a later one is the
// owner's for good. So no lock is put back that has been taken back, and none is taken back that
// the owner has.
#include <algorithm>
#include <new>
#include <utility>

#include "nfs/lock/lock_manager.h"

namespace stag::nfs::lock {

namespace {

bool same(const LockRequest& a, const LockRequest& b) {
  return a.file == b.file && a.range == b.range && a.exclusive == b.exclusive &&
         *a.owner == *b.owner;
}

}  // namespace

std::vector<Ticket> LockManager::pending_tickets() const {
  const std::scoped_lock lock(mutex_);
  std::vector<Ticket> all;
  all.reserve(pending_.size());
  for (const auto& [ticket, pending] : pending_) all.push_back(ticket);
  return all;
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
  const Offers offers = offers_of(ticket);
  try {
    settle(ticket, wanted || offers.unanswered);
  } catch (const std::bad_alloc&) {  // what is offered again is not the first offer
    not_yet(ticket);
    throw;
  }
}

bool LockManager::give_up(Ticket ticket) {
  const Offers offers = offers_of(ticket);
  const bool may_have_arrived = offers.offered || offers.unanswered;
  return settle(ticket, may_have_arrived) && !may_have_arrived;
}

void LockManager::forget_silent(const std::string& address, TimePoint now) {
  std::unique_lock lock(mutex_);
  table_.forget_silent(address, now, [&](Ticket ticket) { blocked_.erase(ticket); });
  Notices notices = take_notices();
  lock.unlock();
  deliver(notices);
}

LockManager::Offers LockManager::offers_of(Ticket ticket) const {
  const std::scoped_lock lock(mutex_);
  const auto found = pending_.find(ticket);
  if (found == pending_.end()) return {};
  return {found->second.offered, found->second.unanswered};
}

bool LockManager::settle(Ticket ticket, bool wanted) {
  std::unique_lock lock(mutex_);
  const auto found = pending_.find(ticket);
  if (found == pending_.end()) return false;
  const LockRequest& request = found->second.grant.request;
  // Where memory runs out the client is asked once more.
  take_grants();
  if (wanted) {
    const auto is_this = [&](const PendingGrant& one) { return one.grant.ticket == ticket; };
    Befores befores = befores_without(request.file, *request.owner, is_this);
    put(befores);
  } else {
    revert(found->second);
  }
  const Grant grant = take_pending(ticket);
  Notices notices = take_notices();
  lock.unlock();
  if (!wanted) freed(&grant.request.file, grant.request.range);
  deliver(notices);
  return true;
}

nlm::nlm4_stats LockManager::cancel(const LockRequest& request) {
  std::unique_lock lock(mutex_);
  take_grants();
  bool found = false;
  if (const auto ticket = table_.cancel(request)) {
    blocked_.erase(*ticket);
    found = true;
  }
  // The request may have been granted while the client cancelled it.
  each_pending_of(request.file, *request.owner, [&](const PendingGrant& pending) {
    if (!same(pending.grant.request, request)) return;
    revert(pending);
    take_pending(pending.grant.ticket);
    found = true;
  });
  Notices notices = take_notices();
  lock.unlock();
  if (found) freed(&request.file, request.range);
  deliver(notices);
  return found ? nlm::NLM4_GRANTED : nlm::NLM4_DENIED;
}

bool LockManager::is_pending(Ticket ticket) const {
  const std::scoped_lock lock(mutex_);
  return pending_.contains(ticket);
}

std::size_t LockManager::pending_count() const {
  const std::scoped_lock lock(mutex_);
  return pending_.size();
}

// In the order in which they were granted; `use` may take the one that it is called with. Asks for
// no memory.
template <class Use>
void LockManager::each_pending_of(const FileKey& file, const Owner& owner, Use use) {
  const auto here = pending_in_.find(file);
  if (here == pending_in_.end()) return;
  const auto [first, last] = here->second.equal_range(owner);
  // The file's map goes with its last grant, so no iterator is looked at behind that.
  auto at = first;
  for (auto left = std::distance(first, last); left != 0; --left) {
    const Ticket ticket = (at++)->second;
    if (const auto found = pending_.find(ticket); found != pending_.end()) use(found->second);
  }
}

void LockManager::put(Befores& befores) noexcept {
  for (auto& [pending, before] : befores) pending->grant.before.swap(before);
}

// All of it or, where memory runs out, nothing. What a later grant lies upon is for that to put
// back.
void LockManager::revert(const PendingGrant& unwanted) {
  const LockRequest& request = unwanted.grant.request;
  RangeParts left = unwanted.grant.before;
  Befores later;
  bool is_later = false;
  each_pending_of(request.file, *request.owner, [&](PendingGrant& other) {
    const RangeParts below = is_later ? within(left, other.grant.request.range) : RangeParts{};
    is_later = is_later || &other == &unwanted;
    if (below.empty()) return;
    left = without(left, below);
    later.emplace_back(&other, merged(without(other.grant.before, below), below));
  });
  table_.revert(request, std::move(left));
  put(later);
}

// What the owner's other pending grants put back once those of which which(grant) is true are its
// for good.
template <class Which>
LockManager::Befores LockManager::befores_without(const FileKey& file, const Owner& owner,
                                                  Which which) {
  std::vector<PendingGrant*> all;
  each_pending_of(file, owner, [&](PendingGrant& pending) { all.push_back(&pending); });
  Befores befores;
  RangeParts later;
  for (auto at = all.rbegin(); at != all.rend(); ++at) {
    const Grant& grant = (*at)->grant;
    if (which(**at)) {
      RangeParts more;
      for (const Range& range : outside(grant.request.range, later)) more.push_back({range, {}});
      later = merged(later, more);
    } else if (!within(later, grant.request.range).empty()) {
      befores.emplace_back(*at, without(grant.before, later));
    }
  }
  return befores;
}

LockManager::Befores LockManager::befores_without(const FileKey& file, const Owner& owner,
                                                  Range range) {
  return befores_without(file, owner, [&](const PendingGrant& pending) {
    return pending.grant.request.range.overlaps(range);
  });
}

// The owner's latest operation on these bytes replaces the grants that it had pending there. Asks
// for no memory: `befores` has been made before that operation.
void LockManager::forget_pending(const FileKey& file, const Owner& owner, Range range,
                                 Befores befores) {
  put(befores);
  each_pending_of(file, owner, [&](const PendingGrant& pending) {
    if (pending.grant.request.range.overlaps(range)) take_pending(pending.grant.ticket);
  });
}

// Removes a pending grant and returns it.
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

// Takes over the first grant of the table: all of it or, where memory runs out, nothing. So all is
// made first that asks for memory.
void LockManager::take_grant() {
  const Grant& granted = table_.grants().front();
  const Ticket ticket = granted.ticket;
  std::list<GrantNotice> notice;
  notice.push_back({granted.request.owner->client, ticket});
  std::map<Ticket, PendingGrant> pending;
  PendingGrant& made = pending.try_emplace(ticket).first->second;
  Grants of_owner;
  of_owner.emplace(granted.request.owner, ticket);
  Grants& of_file = pending_in_[granted.request.file];
  of_file.merge(of_owner);
  if (auto params = blocked_.extract(ticket)) made.params = std::move(params.mapped());
  made.grant = table_.take_grant();
  pending_.merge(pending);
  undelivered_.splice(undelivered_.end(), notice);
}

// Also before whatever looks at pending grants: there may not have been memory for all.
void LockManager::take_grants() {
  while (!table_.grants().empty()) take_grant();
}

}  // namespace stag::nfs::lock
