#include "nfs/lock/lock_table.h"

#include <algorithm>

namespace stag::nfs::lock {

namespace {

Range joined(const Range& a, const Range& b) {
  return {std::min(a.first, b.first), std::max(a.last, b.last)};
}

bool same_wish(const Range& a, bool a_exclusive, const Owner& a_owner, const LockRequest& b) {
  return a == b.range && a_exclusive == b.exclusive && a_owner == *b.owner;
}

// What is left of `held` around `range`.
void keep_outside(const Held& held, const Range& range, std::vector<Held>& to) {
  if (held.range.first < range.first)
    to.push_back({{held.range.first, range.first - 1}, held.exclusive, held.owner});
  if (held.range.last > range.last)
    to.push_back({{range.last + 1, held.range.last}, held.exclusive, held.owner});
}

}  // namespace

std::optional<Range> range_of(std::uint64_t offset, std::uint64_t length) {
  if (length == 0 || length == ~std::uint64_t{0}) return Range{offset, Range::kEnd};
  if (length - 1 > Range::kEnd - offset) return std::nullopt;
  return Range{offset, offset + (length - 1)};
}

const Held* LockTable::conflict(const File& file, const Owner& owner, Range range, bool exclusive) {
  for (const Held& held : file.held)
    if ((exclusive || held.exclusive) && held.range.overlaps(range) && !(*held.owner == owner))
      return &held;
  return nullptr;
}

std::optional<Held> LockTable::test(const LockRequest& request) const {
  const auto found = files_.find(request.file);
  if (found == files_.end()) return std::nullopt;
  const Held* held = conflict(found->second, *request.owner, request.range, request.exclusive);
  if (held == nullptr) return std::nullopt;
  return *held;
}

// Whether setting this lock takes exclusive bytes back to shared.
bool LockTable::frees(const File& file, const LockRequest& request) {
  return !request.exclusive &&
         std::any_of(file.held.begin(), file.held.end(), [&](const Held& held) {
           return held.exclusive && held.range.overlaps(request.range) &&
                  *held.owner == *request.owner;
         });
}

LockTable::Answer LockTable::lock(const LockRequest& request, bool wait) {
  File& file = files_[request.file];
  Answer answer;
  if (conflict(file, *request.owner, request.range, request.exclusive) != nullptr) {
    if (wait) answer = enqueue(file, request);
  } else {
    const bool freed = frees(file, request);
    const bool set = assign(file, request.owner, request.range, request.exclusive);
    answer.outcome = set ? LockOutcome::Granted : LockOutcome::Full;
    if (set) answer.ticket = leave_queue(file, request);
    if (set && freed) sweep(request.file, file, request.range);
  }
  tidy(request.file);
  return answer;
}

LockTable::Answer LockTable::enqueue(File& file, const LockRequest& request) {
  for (const Waiter& waiter : file.waiters)
    if (same_wish(waiter.range, waiter.exclusive, *waiter.owner, request))
      return {LockOutcome::Blocked, waiter.ticket};
  const Client& client = request.owner->client;
  const auto here = addresses_.find(client.address);
  if (file.places() >= limits_.waiters_of_file || !room(file, client, 1) ||
      (here != addresses_.end() && here->second.places >= limits_.waiters_of_address))
    return {LockOutcome::Full, 0};
  count_place(client, 1);
  file.waiters.push_back({++last_ticket_, request.owner, request.range, request.exclusive});
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

// The place that is given up; 0: there was none.
Ticket LockTable::leave_queue(File& file, const LockRequest& request) {
  std::vector<Waiter>& waiters = file.waiters;
  const auto waiter = std::find_if(waiters.begin(), waiters.end(), [&](const Waiter& one) {
    return same_wish(one.range, one.exclusive, *one.owner, request);
  });
  if (waiter == waiters.end()) return 0;
  const Ticket ticket = waiter->ticket;
  waiters.erase(waiter);
  count_place(request.owner->client, -1);
  return ticket;
}

bool LockTable::unlock(const FileKey& key, const Owner& owner, Range range) {
  const auto found = files_.find(key);
  if (found == files_.end()) return true;
  File& file = found->second;
  const auto mine = std::find_if(file.held.begin(), file.held.end(),
                                 [&](const Held& held) { return *held.owner == owner; });
  if (mine == file.held.end()) return true;
  const OwnerPtr holder = mine->owner;
  if (!assign(file, holder, range, std::nullopt)) return false;
  sweep(key, file, range);
  tidy(key);
  return true;
}

void LockTable::settled(const Grant& grant) {
  const auto found = files_.find(grant.request.file);
  if (found == files_.end() || found->second.unsettled == 0) return;
  --found->second.unsettled;
  count_place(grant.request.owner->client, -1);
  tidy(grant.request.file);
}

void LockTable::revert(const Grant& grant) {
  const auto found = files_.find(grant.request.file);
  if (found == files_.end()) return;
  File& file = found->second;
  if (!assign(file, grant.request.owner, grant.request.range, std::nullopt)) return;
  for (const Held& held : grant.before)
    static_cast<void>(assign(file, held.owner, held.range, held.exclusive));
  sweep(grant.request.file, file, grant.request.range);
  tidy(grant.request.file);
}

// Gives `range` the mode `exclusive`, or none, for this owner. False, and nothing changed, when
// that would be more locks than there may be.
bool LockTable::assign(File& file, const OwnerPtr& owner, Range range,
                       std::optional<bool> exclusive) {
  const auto affected = [&](const Held& held) {
    const bool merges = exclusive == held.exclusive;
    return (merges ? held.range.joins(range) : held.range.overlaps(range)) && *held.owner == *owner;
  };
  std::vector<Held> pieces;
  Range merged = range;
  std::size_t before = 0;
  for (const Held& held : file.held) {
    if (!affected(held)) continue;
    ++before;
    if (exclusive == held.exclusive)
      merged = joined(merged, held.range);
    else
      keep_outside(held, range, pieces);
  }
  if (exclusive) pieces.push_back({merged, *exclusive, owner});
  if (pieces.size() > before && !room(file, owner->client, pieces.size() - before)) return false;
  std::erase_if(file.held, affected);
  file.held.insert(file.held.end(), pieces.begin(), pieces.end());
  count(owner->client,
        static_cast<std::ptrdiff_t>(pieces.size()) - static_cast<std::ptrdiff_t>(before));
  return true;
}

// Makes holders of those who waited for `freed` and conflict with nobody any more. A reader's grant
// may take the same owner's exclusive bytes back to shared, which frees more: then once more, but
// not for ever, for who is not reached asks again by himself.
void LockTable::sweep(const FileKey& key, File& file, Range freed) {
  constexpr int kPasses = 16;
  bool more = true;
  for (int pass = 0; more && pass < kPasses; ++pass) {
    more = false;
    for (std::size_t i = 0; i < file.waiters.size();) {
      const Waiter waiter = file.waiters[i];
      const LockRequest request{key, waiter.owner, waiter.range, waiter.exclusive};
      const bool frees_more = waiter.range.overlaps(freed) && frees(file, request);
      if (!waiter.range.overlaps(freed) || !promote(file, waiter, request)) {
        ++i;
        continue;
      }
      if (frees_more) freed = joined(freed, waiter.range);
      more = more || frees_more;
    }
  }
}

// False: he still conflicts, or his client is at its limit; he stays where he is.
bool LockTable::promote(File& file, const Waiter& waiter, const LockRequest& request) {
  if (conflict(file, *waiter.owner, waiter.range, waiter.exclusive) != nullptr) return false;
  Grant grant{waiter.ticket, request, {}};
  for (const Held& held : file.held) {
    if (!held.range.overlaps(waiter.range) || !(*held.owner == *waiter.owner)) continue;
    const Range inside{std::max(held.range.first, waiter.range.first),
                       std::min(held.range.last, waiter.range.last)};
    grant.before.push_back({inside, held.exclusive, held.owner});
  }
  if (!assign(file, waiter.owner, waiter.range, waiter.exclusive)) return false;
  // His place stays counted.
  std::erase_if(file.waiters, [&](const Waiter& one) { return one.ticket == grant.ticket; });
  ++file.unsettled;
  granted_.push_back(std::move(grant));
  return true;
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
  const bool fits = room(file, share.owner->client, 1);
  if (fits) {
    count(share.owner->client, 1);
    file.shares.push_back(share);
  }
  tidy(key);
  return fits ? LockOutcome::Granted : LockOutcome::Full;
}

void LockTable::unshare(const FileKey& key, const Owner& owner) {
  const auto found = files_.find(key);
  if (found == files_.end()) return;
  const std::size_t gone = std::erase_if(found->second.shares,
                                         [&](const Share& share) { return *share.owner == owner; });
  count(owner.client, -static_cast<std::ptrdiff_t>(gone));
  tidy(key);
}

std::vector<Ticket> LockTable::release(const Which& which) {
  std::vector<FileKey> freed;
  std::vector<Ticket> places;
  for (auto& [key, file] : files_)
    if (release_from(file, which, places)) freed.push_back(key);
  for (const FileKey& key : freed) {
    sweep(key, files_[key], Range{});
    tidy(key);
  }
  return places;
}

// Whether there was anything to release.
bool LockTable::release_from(File& file, const Which& which, std::vector<Ticket>& places) {
  bool any = false;
  const auto gone = [&](const auto& entry) {
    if (!which(entry.owner->client)) return false;
    any = true;
    return true;
  };
  const auto counted = [&](const auto& entry) {
    const bool goes = gone(entry);
    if (goes) count(entry.owner->client, -1);
    return goes;
  };
  std::erase_if(file.held, counted);
  std::erase_if(file.shares, counted);
  std::erase_if(file.waiters, [&](const Waiter& waiter) {
    const bool goes = gone(waiter);
    if (!goes) return false;
    places.push_back(waiter.ticket);
    count_place(waiter.owner->client, -1);
    return true;
  });
  return any;
}

std::vector<Client> LockTable::clients() const {
  std::vector<Client> all;
  for (const auto& entry : counts_) all.push_back(entry.first);
  return all;
}

std::vector<Held> LockTable::held(const FileKey& file) const {
  const auto found = files_.find(file);
  if (found == files_.end()) return {};
  return found->second.held;
}

bool LockTable::room(const File& file, const Client& client, std::size_t more) const {
  const auto found = counts_.find(client);
  const std::size_t own = found == counts_.end() ? 0 : found->second;
  const auto here = addresses_.find(client.address);
  const std::size_t of_address = here == addresses_.end() ? 0 : here->second.all;
  return own + more <= limits_.of_client && of_address + more <= limits_.of_address &&
         file.size() + more <= limits_.of_file && total_ + more <= limits_.in_all;
}

void LockTable::count(const Client& client, std::ptrdiff_t change) {
  if (change == 0) return;
  std::size_t& own = counts_[client];
  own += static_cast<std::size_t>(change);
  total_ += static_cast<std::size_t>(change);
  if (own == 0) counts_.erase(client);
  Address& here = addresses_[client.address];
  here.all += static_cast<std::size_t>(change);
  if (here.all == 0) addresses_.erase(client.address);
}

void LockTable::count_place(const Client& client, std::ptrdiff_t change) {
  count(client, change);
  if (const auto here = addresses_.find(client.address); here != addresses_.end())
    here->second.places += static_cast<std::size_t>(change);
}

void LockTable::tidy(const FileKey& key) {
  const auto found = files_.find(key);
  if (found != files_.end() && found->second.size() == 0) files_.erase(found);
}

}  // namespace stag::nfs::lock
