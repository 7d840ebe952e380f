// Of LockManager: the grants that clients have not acknowledged.
#include <algorithm>
#include <new>
#include <utility>

#include "nfs/lock/lock_manager.h"

namespace stag::nfs::lock {

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
  // Where memory runs out the client is asked once more.
  if (!wanted) table_.revert(found->second.grant);
  const Grant grant = take_pending(ticket);
  Notices notices = take_notices();
  lock.unlock();
  if (!wanted) freed(&grant.request.file, grant.request.range);
  deliver(notices);
  return true;
}

bool LockManager::is_pending(Ticket ticket) const {
  const std::scoped_lock lock(mutex_);
  return pending_.contains(ticket);
}

std::size_t LockManager::pending_count() const {
  const std::scoped_lock lock(mutex_);
  return pending_.size();
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
