#include "nfs/recovery/recovery.h"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "base/reason.h"
#include "nfs/state/clients.h"

namespace stag::nfs::recovery {

namespace {

constexpr std::uint32_t kEpochInStateids = 0xffff;

// Of a client that has ended since it asked, others may have what it held before that is known
// here.
bool has_no_claim(const Change& change) {
  return change.life != nullptr && (change.life->forfeits() || change.life->ended());
}

// They never say that they have reclaimed all.
bool anybody_without_sessions(const std::vector<ClientOwner>& clients) {
  return std::ranges::any_of(clients, [](const ClientOwner& owner) {
    return owner.ownerid.starts_with(state::kOwnerWithoutSessions);
  });
}

}  // namespace

Result<std::unique_ptr<Recovery>, std::string> Recovery::open(const Location& location,
                                                              std::uint32_t lease_seconds,
                                                              std::shared_ptr<Executor> worker,
                                                              std::uint64_t handles) {
  auto database = Database::open(location, lease_seconds, handles);
  if (!database) return Failure{database.error()};
  return std::unique_ptr<Recovery>(new Recovery(*std::move(database), std::move(worker)));
}

Recovery::Recovery(std::unique_ptr<Database> database, std::shared_ptr<Executor> worker)
    : database_(std::move(database)),
      left_(database_->former().begin(), database_->former().end()),
      worker_(std::move(worker)) {}

bool Recovery::may_reclaim(const ClientOwner& owner, state::ClientId client) const {
  const BriefLock lock(mutex_);
  const auto [first, last] = withheld_.equal_range(owner);
  return left_.contains(owner) &&
         std::all_of(first, last, [client](const auto& of) { return of.second == client; });
}

// The mutex is not held over an allocation.
Recovery::Withheld::Withheld(Recovery& recovery, const ClientOwner& owner, state::ClientId client)
    : recovery_(recovery) {
  std::multimap<ClientOwner, state::ClientId> made{{owner, client}};
  auto node = made.extract(made.begin());
  const BriefLock lock(recovery_.mutex_);
  entry_ = recovery_.withheld_.insert(std::move(node));
}

Recovery::Withheld::~Withheld() {
  std::multimap<ClientOwner, state::ClientId>::node_type node;
  const BriefLock lock(recovery_.mutex_);
  node = recovery_.withheld_.extract(entry_);
}

bool Recovery::anybody_left() const {
  const BriefLock lock(mutex_);
  return !left_.empty();
}

// The mutex is not held over an allocation: memory comes first, and what of a name is longer than
// clients' names may be is left out.
Recovery::Awaited Recovery::awaited(std::size_t most) const {
  constexpr std::size_t kOwner = 1100, kPrincipal = 300;
  Awaited found;
  found.owners.resize(std::min(most, count_left()));
  for (ClientOwner& owner : found.owners) {
    owner.ownerid.reserve(kOwner);
    owner.principal.reserve(kPrincipal);
  }
  std::size_t count = 0;
  {
    const BriefLock lock(mutex_);
    // While they are being removed they can reclaim all the same.
    const Owners& left = finishing_ != nullptr ? finishing_->incomplete : left_;
    found.all = left.size();
    for (auto at = left.begin(); at != left.end() && count != found.owners.size(); ++at, ++count) {
      found.owners[count].ownerid.assign(at->ownerid, 0, kOwner);
      found.owners[count].principal.assign(at->principal, 0, kPrincipal);
    }
  }
  found.owners.resize(count);
  return found;
}

void Recovery::begin_grace(state::GracePeriod& period, TimePoint end) const {
  if (anybody_left()) period.begin(end, anybody_without_sessions(database_->former()));
}

// disk_ is held from the first record to the beginning of the period: one that ends just now would
// remove what is written here.
Result<Ok, std::string> Recovery::adopt(Database& lost, state::GracePeriod& period, TimePoint end) {
  // What clients of version 4.0 have would be taken for what this server gave, and took away.
  if (((lost.epoch() ^ epoch()) & kEpochInStateids) == 0)
    return Failure{
        std::string("both servers have counted the same start; restart this one, and adopt again")};
  const std::vector<ClientOwner>& clients = lost.former();
  if (clients.empty()) return Ok{};
  // Before anything is written: nothing that is can be undone for want of memory.
  Owners adopted(clients.begin(), clients.end());
  {
    const std::scoped_lock disk(disk_);
    if (auto written = database_->adopt(clients, lost.former_lease()); !written) return written;
    {
      const BriefLock lock(mutex_);
      left_.merge(adopted);
    }
    period.begin(end, anybody_without_sessions(clients));
  }
  auto given = lost.give_away();
  if (!given) return Failure{"they are adopted, but stay there, too: " + given.error()};
  return given;
}

std::size_t Recovery::count_left() const {
  const BriefLock lock(mutex_);
  return left_.size();
}

// From the first step on no other client is admitted; `told` knows those that were. A client that
// becomes done until all are cut off is spared; one that becomes so later is told that it was cut
// off.
bool Recovery::finish_grace(state::GracePeriod& period, std::uint64_t number, GraceEnd& told) {
  const std::scoped_lock disk(disk_);
  if (!period.finishing(number)) return true;
  Finishing finishing;
  bool finished = false;
  try {
    finishing.done.reserve(count_left());
    {
      const BriefLock lock(mutex_);
      finishing.incomplete.swap(left_);
      finishing_ = &finishing;
    }
    told.begin(finishing.incomplete);
    finished = remove_former_held(finishing.incomplete);
  } catch (const std::bad_alloc&) {
    // Not finished.
  }
  if (finished) told.cut_off();
  Owners done;
  {
    const BriefLock lock(mutex_);
    finishing_ = nullptr;
    for (const auto& at : finishing.done) done.insert(finishing.incomplete.extract(at));
    if (!finished) left_.merge(finishing.incomplete);
  }
  if (!finished) return false;
  told.spare(done);
  period.end(number);
  return true;
}

bool Recovery::completed(const ClientOwner& owner) {
  const BriefLock lock(mutex_);
  if (finishing_ != nullptr) {
    const auto found = finishing_->incomplete.find(owner);
    if (found != finishing_->incomplete.end() &&
        std::ranges::find(finishing_->done, found) == finishing_->done.end())
      finishing_->done.push_back(found);
  }
  return left_.erase(owner) != 0 && left_.empty();
}

Recovery::WritePtr Recovery::enqueue(const Change& change) {
  Queue queued{std::make_shared<Write>(change)};
  WritePtr write = queued.front();
  Clients recorded;
  if (change.kind == Change::Kind::Add) recorded.insert(change.client);
  const BriefLock lock(mutex_);
  queue_.splice(queue_.end(), queued);
  recorded_.merge(recorded);
  write->first = change.kind == Change::Kind::Add && recorded.empty() &&
                 !ended_.contains(change.client) && !removing_.contains(change.client);
  return write;
}

void Recovery::take_back(const WritePtr& write) {
  Queue taken;
  Clients gone;
  const BriefLock lock(mutex_);
  if (const auto found = std::ranges::find(queue_, write); found != queue_.end())
    taken.splice(taken.end(), queue_, found);
  note_unwritten(taken, gone);
}

bool Recovery::write(const Change& change) {
  const WritePtr write = enqueue(change);
  try {
    return commit(*write) == Written::Yes;
  } catch (...) {
    take_back(write);
    throw;
  }
}

// The first job to run writes the changes of all that wait.
Written Recovery::commit(Write& write) {
  const std::scoped_lock disk(disk_);
  if (!write.done) commit_all();
  if (!write.done.value_or(false)) return Written::Failed;
  return write.forfeited ? Written::Forfeited : Written::Yes;
}

// With disk_ held. A client that has ended is removed together with what is asked for: otherwise
// the record of one incarnation of a client would outlive what the next one loses.
bool Recovery::commit_all() {
  Queue batch;
  {
    const BriefLock lock(mutex_);
    batch.swap(queue_);
    removing_.swap(ended_);
  }
  if (batch.empty() && removing_.empty()) return true;
  try {
    // Clients that a COMMIT that failed was to add are kept. Where each one fails they would grow
    // if others were added before those that have ended are gone.
    const bool doubt = database_->in_doubt(), tried = !doubt || apply({});
    if (doubt && tried) note_removed(batch);
    const bool applied = tried && apply(batch);
    for (const WritePtr& write : batch) write->done = applied;
    if (applied) note_rows(batch);
    put_back();
    if (applied || (tried && database_->in_doubt())) return applied;
    Clients gone;
    const BriefLock lock(mutex_);
    note_unwritten(batch, gone);
    return false;
  } catch (...) {
    // No memory: they go with the next.
    put_back();
    const BriefLock lock(mutex_);
    queue_.splice(queue_.begin(), batch);
    throw;
  }
}

// Those that could not be removed, if any.
void Recovery::put_back() {
  Clients twice;
  const BriefLock lock(mutex_);
  ended_.swap(removing_);
  ended_.merge(removing_);
  twice.swap(removing_);
}

// With disk_ held: what has been written, and removed. A client whose record is gone, and is not
// asked for again, need not be removed when it ends.
void Recovery::note_rows(const Queue& batch) {
  Clients removed, gone;
  const BriefLock lock(mutex_);
  removed.swap(removing_);
  for (const WritePtr& write : batch) {
    const bool adds = write->change.kind == Change::Kind::Add;
    Clients &from = adds ? gone : recorded_, &to = adds ? recorded_ : gone;
    to.insert(from.extract(write->change.client));
    // Not by the request that asked, when it hears of it: the record may be gone again by then.
    if (write->change.life != nullptr && !write->forfeited) write->change.life->recorded = true;
  }
  gone.merge(removed);
  note_asked_for(gone);
}

// With disk_ held: who has been removed, and is not added by the batch again.
void Recovery::note_removed(const Queue& batch) {
  Clients gone;
  const BriefLock lock(mutex_);
  gone.swap(removing_);
  for (const WritePtr& write : batch)
    if (write->change.kind == Change::Kind::Add)
      removing_.insert(gone.extract(write->change.client));
  note_asked_for(gone);
}

// With mutex_ held: what has not been written. A client that has no record without it need not be
// removed, either.
void Recovery::note_unwritten(const Queue& batch, Clients& gone) {
  for (const WritePtr& write : batch)
    if (write->first)
      for (Clients* const from : {&recorded_, &ended_})
        gone.insert(from->extract(write->change.client));
  note_asked_for(gone);
}

// With mutex_ held: who of those that have no record is to get one.
void Recovery::note_asked_for(Clients& gone) {
  for (const WritePtr& write : queue_) {
    if (write->change.kind != Change::Kind::Add) continue;
    write->first |= gone.contains(write->change.client);
    recorded_.insert(gone.extract(write->change.client));
  }
}

// With disk_ held, and who is removed.
bool Recovery::apply(const Queue& batch) {
  std::vector<Change> changes;
  changes.reserve(batch.size() + removing_.size());
  for (const WritePtr& write : batch)
    if (write->forfeited = has_no_claim(write->change); !write->forfeited)
      changes.push_back(write->change);
  for (const state::ClientId client : removing_)
    changes.push_back({Change::Kind::Remove, client, {}});
  const auto applied = database_->apply(changes);
  if (!applied) trace(Reason::ClientRecordsUnwritten, "clients", applied.error());
  return applied.ok();
}

bool Recovery::remove_former() {
  const std::scoped_lock disk(disk_);
  return remove_former_held();
}

// With disk_ held.
bool Recovery::remove_former_held(const Owners& incomplete) {
  const auto removed = database_->remove_former(incomplete);
  if (!removed) trace(Reason::ClientRecordsUnwritten, "grace period", removed.error());
  return removed.ok();
}

// A client that is done with earlier starts, and holds something, has a record of this one, too.
void Recovery::remove_unneeded(UniqueFunction<bool(state::ClientId)> holds_something) {
  const std::scoped_lock disk(disk_);
  const auto failed = [](const std::string& why) {
    trace(Reason::ClientRecordsUnwritten, "clients", why);
  };
  const auto records = database_->records();
  if (!records) return failed(records.error());
  std::vector<Change> changes;
  for (const Database::Record& each : *records) {
    const bool needed =
        each.epoch == epoch() ? holds_something(each.client) : may_reclaim(each.owner);
    if (!needed) changes.push_back({Change::Kind::Remove, each.client, {}});
  }
  if (changes.empty()) return;
  if (const auto applied = database_->apply(changes); !applied) failed(applied.error());
}

// A change that the worker refuses is requested again, and may have been written by another
// transaction meanwhile: an unneeded record does no harm.
Task<Written> Recovery::written(WritePtr write, Loop& loop, const void* asker) {
  // Not in the call: braces and co_await do not go together in every compiler.
  const auto work = [this, write] { return commit(*write); };
  const Written result = co_await offloaded_to(worker_.get(), asker, loop, work, Written::Busy);
  if (result == Written::Busy) take_back(write);
  co_return result;
}

Task<Written> Recovery::add(state::ClientId client, ClientOwner owner, Loop& loop,
                            const void* asker, state::LifePtr life) {
  return written(enqueue({Change::Kind::Add, client, std::move(owner), std::move(life)}), loop,
                 asker);
}

bool Recovery::note_ended(state::ClientId client) noexcept {
  const BriefLock lock(mutex_);
  return ended_.insert(recorded_.extract(client)).inserted;
}

Task<Written> Recovery::remove_ended(Loop& loop, const void* asker) {
  const auto work = [this] {
    const std::scoped_lock disk(disk_);
    return commit_all() ? Written::Yes : Written::Failed;
  };
  co_return co_await offloaded_to(worker_.get(), asker, loop, work, Written::Busy);
}

void Recovery::remove_later(state::ClientId client) noexcept {
  if (note_ended(client)) remove_again();
}

bool Recovery::unremoved() const {
  const BriefLock lock(mutex_);
  return !removing_.empty() || !ended_.empty();
}

// One that is due removes also who ends before it has the disk, which may take long. Refused, and
// given up, it is not due.
void Recovery::remove_again() noexcept try {
  if (!unremoved() || removal_due_.exchange(true)) return;
  struct Due {
    explicit Due(std::atomic<bool>& flag) : flag(&flag) {}
    Due(Due&& other) noexcept : flag(std::exchange(other.flag, nullptr)) {}
    ~Due() {
      if (flag != nullptr) flag->store(false);
    }
    std::atomic<bool>* flag;
  };
  static_cast<void>(offload([this, due = Due(removal_due_)]() mutable {
    const std::scoped_lock disk(disk_);
    { const Due begun = std::move(due); }
    commit_all();
  }));
} catch (const std::bad_alloc&) {
  // The next time.
}

bool Recovery::offload(Executor::Function work) {
  if (worker_ == nullptr) return work(), true;
  jobs_.fetch_add(1);
  Executor::Job job;
  job.work = std::move(work);
  // Runs also when the worker drops the job.
  job.done = [this] {
    jobs_.fetch_sub(1);
    jobs_.notify_all();
  };
  job.deliver = [](void*, Executor::Function done) { done(); };
  const auto not_taken = [this] {
    jobs_.fetch_sub(1);
    jobs_.notify_all();
  };
  try {
    if (worker_->submit(std::move(job))) return true;
  } catch (...) {
    not_taken();
    throw;
  }
  not_taken();
  return false;
}

std::size_t Recovery::waiting() const {
  const BriefLock lock(mutex_);
  return queue_.size();
}

void Recovery::drain() const {
  for (std::uint32_t jobs = jobs_.load(); jobs != 0; jobs = jobs_.load()) jobs_.wait(jobs);
}

}  // namespace stag::nfs::recovery
