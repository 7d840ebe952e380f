#include "nfs/session/opens.h"

#include <algorithm>
#include <new>
#include <utility>

namespace stag::nfs::session {

// RFC 8881 8.2.2: with the number 0 a stateid is the latest one of its state.
v4::stateid4 Opens::kept(v4::stateid4 stateid) const {
  if (version_ == Version::WithSessions) stateid.seqid = 0;
  return stateid;
}

Opens::Open* Opens::find(Id id) {
  const auto found = opens_.find(id);
  return found == opens_.end() ? nullptr : &found->second;
}

const Opens::Open* Opens::find(Id id) const {
  const auto found = opens_.find(id);
  return found == opens_.end() ? nullptr : &found->second;
}

void Opens::add(Id id, const v4::nfs_fh4& file, std::uint32_t access, const v4::stateid4& stateid,
                std::shared_ptr<const Opener> opener) {
  by_file_.emplace(file, id);
  opens_[id] = {
      .file = file, .access = access, .stateid = kept(stateid), .opener = std::move(opener)};
}

void Opens::drop(Id id) {
  if (const Open* open = find(id)) by_file_.erase({open->file, id});
  opens_.erase(id);
  to_reclaim_.erase(id);
  to_reopen_.erase(id);
  put_off_.erase(id);
}

bool Opens::intact(Id id) const {
  const Open* open = find(id);
  return open != nullptr && open->state != State::Lost && !open->locks_lost;
}

std::optional<v4::stateid4> Opens::stateid(Id id) const {
  const Open* open = find(id);
  if (open == nullptr || open->state != State::Held) return std::nullopt;
  return open->stateid;
}

std::optional<v4::stateid4> Opens::data_stateid(Id id) const {
  const Open* open = find(id);
  if (open == nullptr || open->state != State::Held || open->locks_lost) return std::nullopt;
  for (const auto& [owner, locks] : open->locks)
    if (locks.stateid && !locks.modes.empty()) return locks.stateid;
  return open->stateid;
}

const v4::nfs_fh4* Opens::file(Id id) const {
  const Open* open = find(id);
  return open == nullptr ? nullptr : &open->file;
}

std::uint32_t Opens::access(Id id) const {
  const Open* open = find(id);
  return open == nullptr ? 0 : open->access;
}

std::shared_ptr<const Opener> Opens::opener(Id id) const {
  const Open* open = find(id);
  return open == nullptr ? nullptr : open->opener;
}

std::optional<v4::stateid4> Opens::lock_stateid(Id id, const LockOwner& owner) const {
  const Open* open = find(id);
  if (open == nullptr) return std::nullopt;
  const auto found = open->locks.find(owner);
  return found == open->locks.end() ? std::nullopt : found->second.stateid;
}

const Opens::LockOwner* Opens::lock_owner(Id id, const v4::stateid4& stateid) const {
  const Open* open = find(id);
  if (open == nullptr) return nullptr;
  for (const auto& [owner, locks] : open->locks)
    if (locks.stateid == stateid) return &owner;
  return nullptr;
}

bool Opens::has_locks(Id id, const LockOwner& owner) const {
  const Open* open = find(id);
  if (open == nullptr) return false;
  const auto found = open->locks.find(owner);
  return found != open->locks.end() && !found->second.modes.empty();
}

bool Opens::has_locks(const LockOwner& owner) const {
  return std::ranges::any_of(opens_,
                             [&](const auto& open) { return has_locks(open.first, owner); });
}

std::vector<Opens::Modes::Piece> Opens::locks_within(Id id, const LockOwner& owner,
                                                     const state::Range& range) const {
  const Open* open = find(id);
  if (open == nullptr) return {};
  const auto found = open->locks.find(owner);
  return found == open->locks.end() ? Modes().within(range) : found->second.modes.within(range);
}

std::vector<Opens::Modes::Piece> Opens::all_within(Id id, const LockOwner& owner,
                                                   const state::Range& range) const {
  Modes all;
  const Open* open = find(id);
  if (open == nullptr) return {};
  for (auto at = by_file_.lower_bound({open->file, 0});
       at != by_file_.end() && at->first == open->file; ++at)
    for (const Modes::Piece& piece : locks_within(at->second, owner, range))
      all.raise(piece.range, piece.mode);
  return all.within(range);
}

const Opens::LockOwner* Opens::any_lock_owner(Id id) const {
  const Open* open = find(id);
  if (open == nullptr) return nullptr;
  for (const auto& [owner, locks] : open->locks)
    if (!locks.modes.empty()) return &owner;
  return nullptr;
}

void Opens::on_lock(Id id, const LockOwner& owner, const Lock& lock, const v4::stateid4& stateid) {
  Open* open = find(id);
  if (open == nullptr) return;
  Locks& locks = open->locks[owner];
  locks.stateid = kept(stateid);
  locks.lost_stateids = 0;
  locks.modes.set(lock.range, lock.mode);
  replace_others(id, owner, lock.range);
  if (lock.mode == state::RangeMode::None) on_unlock(id, owner, lock.range);
}

// RFC 8881 9.5: to the server an owner has one lock of a byte, whichever open it came by. What was
// lost stays until it is given back.
void Opens::replace_others(Id id, const LockOwner& owner, const state::Range& range) {
  const v4::nfs_fh4& file = find(id)->file;
  for (auto at = by_file_.lower_bound({file, 0}); at != by_file_.end() && at->first == file; ++at) {
    const Open* other = find(at->second);
    if (at->second != id && other != nullptr && !other->locks_lost)
      on_unlock(at->second, owner, range);
  }
}

void Opens::on_maybe_locked(Id id, const LockOwner& owner, const Lock& lock) {
  if (Open* open = find(id)) open->locks[owner].modes.set(lock.range, lock.mode);
}

void Opens::on_unlock(Id id, const LockOwner& owner, const state::Range& range) {
  Open* open = find(id);
  if (open == nullptr) return;
  const auto found = open->locks.find(owner);
  if (found == open->locks.end()) return;
  found->second.modes.set(range, state::RangeMode::None);
  const bool known = version_ == Version::V40 && found->second.stateid;
  if (found->second.modes.empty() && !known) open->locks.erase(found);
  if (any_lock_owner(id) == nullptr) open->locks_lost = false;
}

bool Opens::forget(const LockOwner& owner) {
  bool known = false;
  for (auto& [id, open] : opens_) {
    const auto found = open.locks.find(owner);
    if (found == open.locks.end()) continue;
    known |= found->second.stateid.has_value();
    open.locks.erase(found);
  }
  return known;
}

void Opens::on_lost_stateid(Id id, const LockOwner& owner) noexcept {
  if (Locks* locks = find_locks(id, owner)) ++locks->lost_stateids;
}

bool Opens::on_old_stateid(Id id, const LockOwner& owner) {
  Locks* locks = find_locks(id, owner);
  if (locks == nullptr || !locks->stateid || locks->lost_stateids == 0) return false;
  --locks->lost_stateids;
  ++locks->stateid->seqid;
  return true;
}

Opens::Locks* Opens::find_locks(Id id, const LockOwner& owner) {
  Open* open = find(id);
  if (open == nullptr) return nullptr;
  const auto found = open->locks.find(owner);
  return found == open->locks.end() ? nullptr : &found->second;
}

void Opens::on_restart() {
  resume();
  to_free_.clear();
  to_reopen_.clear();
  for (auto& [id, open] : opens_) {
    open.asked = false;
    if (open.state == State::Lost) continue;
    open.state = State::Reclaim;
    to_reclaim_.insert(id);
    std::erase_if(open.locks, [](const auto& locks) { return locks.second.modes.empty(); });
    for (auto& [owner, locks] : open.locks) {
      locks.stateid.reset();
      locks.lost_stateids = 0;
      if (!open.locks_lost) locks.reclaim_from = 0;
    }
  }
}

void Opens::forget_all() {
  opens_.clear();
  by_file_.clear();
  to_reclaim_.clear();
  to_reopen_.clear();
  resume();
  to_free_.clear();
}

void Opens::give_up_claims() {
  for (const std::set<Id>* claims : {&to_reclaim_, &to_reopen_}) {
    for (auto at = claims->begin(); at != claims->end();) {
      const Id id = *at++;
      const Open& open = *find(id);
      if (open.state != State::Held && !open.asked) drop(id);
    }
  }
}

void Opens::free_later(const Open& open) {
  if (version_ == Version::V40) return;  // it has no FREE_STATEID
  for (const auto& [owner, locks] : open.locks)
    if (locks.stateid) to_free_.push_back(*locks.stateid);
  to_free_.push_back(open.stateid);
}

void Opens::lose_locks(Open& open) {
  std::erase_if(open.locks, [](const auto& locks) { return locks.second.modes.empty(); });
  open.locks_lost = !open.locks.empty();
  for (auto& [owner, locks] : open.locks) {
    locks.stateid.reset();
    locks.reclaim_from.reset();
  }
}

std::vector<Opens::Given> Opens::given(Id from, std::size_t most) const {
  std::vector<Given> all;
  for (auto at = opens_.lower_bound(from); at != opens_.end() && all.size() < most; ++at) {
    if (at->second.state != State::Held) continue;
    all.push_back({at->first, at->second.stateid});
    for (const auto& [owner, locks] : at->second.locks)
      if (locks.stateid) all.push_back({at->first, *locks.stateid});
  }
  return all;
}

bool Opens::is_of(const Open& open, const v4::stateid4& stateid) {
  if (open.stateid == stateid) return true;
  return std::ranges::any_of(open.locks,
                             [&](const auto& locks) { return locks.second.stateid == stateid; });
}

void Opens::on_bad_stateid(Id id, const v4::stateid4& stateid) {
  Open* open = find(id);
  if (open == nullptr || open->state != State::Held || !is_of(*open, stateid)) return;
  // What needs memory first: without it nothing has changed, and whoever asks again finds out.
  to_reopen_.insert(id);
  try {
    free_later(*open);
  } catch (const std::bad_alloc&) {
    to_reopen_.erase(id);
    throw;
  }
  lose_locks(*open);
  open->state = State::Reopen;
}

std::optional<Opens::Lock> Opens::first_lock(const Modes& modes, std::uint64_t from) {
  for (const Modes::Piece& piece : modes.within({from, state::Range::kEnd}))
    if (piece.mode != state::RangeMode::None) return Lock{piece.range, piece.mode};
  return std::nullopt;
}

std::optional<Opens::Claim> Opens::reclaim_of(Id id, const Open& open) {
  if (open.state == State::Reclaim) return Claim{.kind = Claim::Kind::Reclaim, .open = id};
  for (const auto& [owner, locks] : open.locks) {
    if (!locks.reclaim_from) continue;
    const std::optional<Lock> lock = first_lock(locks.modes, *locks.reclaim_from);
    if (lock) return Claim{Claim::Kind::ReclaimLock, id, owner, *lock, {}};
  }
  return std::nullopt;
}

bool Opens::settled(Id id) const {
  if (to_reopen_.contains(id)) return false;
  return !to_reclaim_.contains(id) || !reclaim_of(id, *find(id));
}

std::optional<Opens::Id> Opens::first_due(const std::set<Id>& claims) const {
  const auto at = std::ranges::find_if(
      claims, [this](Id id) { return !put_off_.contains(id) && !underway_.contains(id); });
  return at == claims.end() ? std::nullopt : std::optional(*at);
}

Opens::Due Opens::due(const std::set<Id>& claims) const {
  if (first_due(claims)) return Due::Now;
  const bool left = std::ranges::any_of(claims, [this](Id id) { return !underway_.contains(id); });
  return left ? Due::Later : Due::None;
}

Opens::Due Opens::reclaim_due() const {
  return due(to_reclaim_);
}

// What is not freed yet is in the way of what is opened again.
Opens::Due Opens::reopen_due() const {
  if (freeing_) return Due::None;
  if (!to_free_.empty() && !frees_put_off_) return Due::Now;
  const Due of_opens = due(to_reopen_);
  return of_opens == Due::None && !to_free_.empty() ? Due::Later : of_opens;
}

bool Opens::resume() {
  const bool any = frees_put_off_ || !put_off_.empty();
  frees_put_off_ = false;
  put_off_.clear();
  return any;
}

// Those that were put off have their turn where there are no others.
std::optional<Opens::Claim> Opens::next_reclaim() {
  std::optional<Claim> claim = next_reclaim_now();
  if (!claim && resume()) claim = next_reclaim_now();
  return claim;
}

// Those of an open come one after the other: locks need its stateid. What an owner has locked by
// one open it has not by another one.
std::optional<Opens::Claim> Opens::next_reclaim_now() {
  while (const std::optional<Id> first = first_due(to_reclaim_)) {
    Open& open = *find(*first);
    std::optional<Claim> claim = reclaim_of(*first, open);
    if (claim) {
      open.asked = true;
      return claim;
    }
    to_reclaim_.erase(*first);
  }
  return std::nullopt;
}

std::optional<Opens::Claim> Opens::next_reopen() {
  std::optional<Claim> claim = next_reopen_now();
  if (!claim && !freeing_ && resume()) claim = next_reopen_now();
  return claim;
}

std::optional<Opens::Claim> Opens::next_reopen_now() {
  if (freeing_) return std::nullopt;
  if (!to_free_.empty() && !frees_put_off_)
    return Claim{.kind = Claim::Kind::Free, .stateid = to_free_.front()};
  const std::optional<Id> first = first_due(to_reopen_);
  if (!first) return std::nullopt;
  find(*first)->asked = true;
  return Claim{.kind = Claim::Kind::Reopen, .open = *first};
}

void Opens::begin(const Claim& claim) {
  if (claim.kind == Claim::Kind::Free)
    freeing_ = true;
  else
    underway_.insert(claim.open);
}

void Opens::end(const Claim& claim) {
  if (claim.kind == Claim::Kind::Free)
    freeing_ = false;
  else
    underway_.erase(claim.open);
}

void Opens::put_off(const Claim& claim) {
  if (claim.kind == Claim::Kind::Free)
    frees_put_off_ = true;
  else if (find(claim.open) != nullptr)
    put_off_.insert(claim.open);
}

// All of a holder: one after the other they would keep those of others waiting for as long as each
// of them takes to fail.
void Opens::on_put_off(const Claim& claim, const OfHolder& of_holder) {
  Open* open = find(claim.open);
  if (open == nullptr) return;
  open->asked = false;
  put_off(claim);
  for (const std::set<Id>* claims : {&to_reclaim_, &to_reopen_})
    for (const Id id : *claims)
      if (of_holder(find(id)->opener.get())) put_off_.insert(id);
}

// One lock was reclaimed; the owner's next one is due.
void Opens::on_reclaimed(Locks& locks, const state::Range& range,
                         const v4::stateid4& stateid) const {
  locks.stateid = kept(stateid);
  locks.lost_stateids = 0;
  locks.reclaim_from.reset();
  if (range.last != state::Range::kEnd) locks.reclaim_from = range.last + 1;
}

void Opens::on_claimed(const Claim& claim, const v4::stateid4& stateid) {
  if (claim.kind == Claim::Kind::Free) return freed();
  Open* open = find(claim.open);
  if (open == nullptr) return;
  open->asked = false;
  if (claim.kind != Claim::Kind::ReclaimLock) {
    open->stateid = kept(stateid);
    open->state = State::Held;
    to_reopen_.erase(claim.open);
    return;
  }
  const auto found = open->locks.find(claim.owner);
  if (found != open->locks.end()) on_reclaimed(found->second, claim.lock.range, stateid);
}

void Opens::on_refused(const Claim& claim) {
  if (claim.kind == Claim::Kind::Free) return freed();
  Open* open = find(claim.open);
  if (open == nullptr) return;
  // What needs memory first: without it nothing has changed, and the claim is made again.
  if (claim.kind == Claim::Kind::Reclaim)
    to_reopen_.insert(claim.open);
  else
    to_reopen_.erase(claim.open);
  open->asked = false;
  to_reclaim_.erase(claim.open);
  if (claim.kind == Claim::Kind::ReclaimLock) {
    // What was reclaimed before is given back with the open.
    open->locks_lost = true;
    for (auto& [owner, locks] : open->locks) locks.reclaim_from.reset();
  } else if (claim.kind == Claim::Kind::Reclaim) {
    lose_locks(*open);
    open->state = State::Reopen;
  } else {
    open->state = State::Lost;
  }
}

void Opens::freed() {
  if (!to_free_.empty()) to_free_.pop_front();
}

}  // namespace stag::nfs::session
