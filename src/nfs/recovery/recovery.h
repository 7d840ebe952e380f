// nfs/recovery: which NFSv4 clients may reclaim the state that they held before a restart of the
// server (RFC 8881 8.4): those with a record. The order of writing makes that safe:
//
//   written                     before
//   this start and its lease    the first Call
//   a client                    its first open is answered
//   that a client is gone       what it holds goes to another
//   that it has no record       anything of it is revoked
//   that earlier starts are     the grace period ends, and that who was not done with reclaiming
//                               has no record
//   a client of another server  that server's record of it goes
// Records are in SQLite (database.h), in a file or in a Ceph cluster, and written by the worker;
// changes requested while it writes are written together, by the next transaction.
//
// Thread: any, unless a method is marked blocking: those are for the worker.
#pragma once

#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "base/brief_mutex.h"
#include "base/executor.h"
#include "base/loop.h"
#include "base/task.h"
#include "base/unique_function.h"
#include "nfs/recovery/database.h"
#include "nfs/state/grace_period.h"

namespace stag::nfs::recovery {

// Whether a change is on disk. Busy: the queue of the worker is full, and the caller asks again.
// Forfeited: a client is not recorded that may claim nothing after a restart.
enum class Written : std::uint8_t { Yes, Busy, Failed, Forfeited };

class Recovery {
 public:
  // Reads the records at `location` and counts this start. Blocking. `worker` null: the calling
  // thread writes, for tests. `handles`: as of Database::open(). The error is one sentence.
  static Result<std::unique_ptr<Recovery>, std::string> open(const Location& location,
                                                             std::uint32_t lease_seconds,
                                                             std::shared_ptr<Executor> worker,
                                                             std::uint64_t handles = 0);

  std::uint32_t epoch() const { return database_->epoch(); }
  std::uint64_t server() const { return database_->server(); }
  // The lease in seconds of clients of earlier starts; 0 when there are none.
  std::uint32_t former_lease() const { return database_->former_lease(); }

  // Whether an earlier start recorded this client and it has not sent RECLAIM_COMPLETE. False while
  // the claims are withheld from all but another `client` of its owner.
  bool may_reclaim(const ClientOwner& owner, state::ClientId client = 0) const;
  bool anybody_left() const;
  // Those who may still reclaim, `most` of them at most, and how many they are.
  struct Awaited {
    std::vector<ClientOwner> owners;
    std::size_t all = 0;
  };
  Awaited awaited(std::size_t most) const;
  // Begins the grace period, until `end`, where a client may reclaim. It takes that long whenever a
  // client of version 4.0 is among them: there is no RECLAIM_COMPLETE by which it could say that it
  // is done (RFC 7530 9.6.2).
  void begin_grace(state::GracePeriod& period, TimePoint end) const;
  // The client sent RECLAIM_COMPLETE. True when no other client is left to do so.
  bool completed(const ClientOwner& owner);
  // While a client is being ended its owner is still waited for, since the client may come back,
  // but another client of the same owner may claim nothing.
  class Withheld {
   public:
    Withheld(Recovery& recovery, const ClientOwner& owner, state::ClientId client);
    Withheld(const Withheld&) = delete;
    Withheld& operator=(const Withheld&) = delete;
    ~Withheld();

   private:
    Recovery& recovery_;
    std::multimap<ClientOwner, state::ClientId>::iterator entry_;
  };
  // The clients of `lost`, a server that has ended, may reclaim here what they held there, and
  // there no more; the grace period begins, or goes on, until `end`. When only the records there
  // could not be removed, it has begun all the same. The error is a part of a sentence: why not.
  // Blocking, for any thread but the worker's, which writes what clients wait for: `lost` may hang.
  Result<Ok, std::string> adopt(Database& lost, state::GracePeriod& period, TimePoint end);
  using Owners = std::set<ClientOwner>;

  // Told of the end of a grace period while nothing else can be written.
  class GraceEnd {
   public:
    // They are not done, and nothing is written yet. May find no memory.
    virtual void begin(const Owners& incomplete) = 0;
    // They have no record any more.
    virtual void cut_off() noexcept = 0;
    // But these became done meanwhile: they are to have one again.
    virtual void spare(const Owners& done) noexcept = 0;

   protected:
    ~GraceEnd() = default;
  };
  // Ends this grace period that is due, and reclaiming, unless another one has begun since. A
  // client that was not done has no record then. False: there is no memory, or, and that is logged,
  // the records could not be removed. Blocking.
  bool finish_grace(state::GracePeriod& period, std::uint64_t number, GraceEnd& told);

  // `asker` as of Executor::Job::client.
  // Of a `life` that may claim nothing after a restart (Life::forfeits()), or has ended, nothing is
  // written; any other is `recorded` when it is.
  Task<Written> add(state::ClientId client, ClientOwner owner, Loop& loop, const void* asker,
                    state::LifePtr life = nullptr);
  // A client has ended: its record is to be removed. Nothing that clients ask for is written before
  // it is, and remove_again() does it. False: it has none.
  bool note_ended(state::ClientId client) noexcept;
  // Removes the records of all who have ended. Busy, Failed: remove_again() does it.
  Task<Written> remove_ended(Loop& loop, const void* asker);
  // note_ended() and remove_again(), for a client whose record does no harm meanwhile.
  void remove_later(state::ClientId client) noexcept;
  // Whether there are such records still.
  bool unremoved() const;
  void remove_again() noexcept;

  // The number of changes not yet written.
  std::size_t waiting() const;

  // Runs work that may block on the worker. False when the worker's queue is full: the work does
  // not run.
  bool offload(Executor::Function work);
  // Whether it is written. Blocking. Logs what fails; what throws is not written later either.
  bool write(const Change& change);
  // Removes the records of earlier starts; a failure is logged. Blocking.
  bool remove_former();
  // At the end of this start: removes the records of its clients but for those who hold something,
  // and of earlier ones but for those who are not done. A failure is logged. Blocking.
  void remove_unneeded(UniqueFunction<bool(state::ClientId)> holds_something);
  // Returns when all work given to offload() has run; called before what that work refers to is
  // destroyed. Blocking.
  void drain() const;

 private:
  struct Write {
    explicit Write(const Change& of) : change(of) {}
    const Change change;
    bool first = false;          // with mutex_ held: without it its client has no record
    std::optional<bool> done{};  // with disk_ held
    bool forfeited = false;      // likewise: nothing is to be written
  };
  using WritePtr = std::shared_ptr<Write>;
  // One that is put in or taken out needs no memory.
  using Queue = std::list<WritePtr>;
  using Clients = std::set<state::ClientId>;

  Recovery(std::unique_ptr<Database> database, std::shared_ptr<Executor> worker);
  WritePtr enqueue(const Change& change);
  Written commit(Write& write);
  bool commit_all();
  bool apply(const Queue& batch);
  void note_rows(const Queue& batch);
  void note_removed(const Queue& batch);
  void note_unwritten(const Queue& batch, Clients& gone);
  void note_asked_for(Clients& gone);
  void put_back();
  void take_back(const WritePtr& write);
  bool remove_former_held(const Owners& incomplete = {});
  std::size_t count_left() const;
  Task<Written> written(WritePtr write, Loop& loop, const void* asker);

  const std::unique_ptr<Database> database_;
  std::mutex disk_;  // held over system calls, by workers only
  mutable BriefMutex mutex_;
  Owners left_;  // clients of former(), or adopted, that may still reclaim
  // Those of them for whom the end of a grace period is being written, and which of these have
  // become done meanwhile, with mutex_ held; no memory is needed for them.
  struct Finishing {
    Owners incomplete;
    std::vector<Owners::const_iterator> done;
  };
  Finishing* finishing_ = nullptr;
  std::multimap<ClientOwner, state::ClientId> withheld_;
  Queue queue_;
  // Of this start: who has a record, or has asked for one; of these who has ended; and of these
  // whose record is being removed just now (changed with disk_ held, too). The memory for a removal
  // is there since the record was asked for, so that none is forgotten for want of it. Clients that
  // cannot be removed keep others from being added, and those that could not be added are not kept,
  // so that these sets do not grow.
  Clients recorded_, ended_, removing_;
  std::atomic<bool> removal_due_{
      false};  // a job that does not have disk_ yet removes those in ended_
  mutable std::atomic<std::uint32_t> jobs_{0};
  const std::shared_ptr<Executor> worker_;  // declared last: destroyed before what its jobs use
};

}  // namespace stag::nfs::recovery
