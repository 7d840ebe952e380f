// nfs/recovery: which NFSv4 clients may claim again what they held before a restart of the server
// (RFC 8881 8.4). Who has a record may, nobody else; what makes that safe is the order of writing:
//
//   written                     before
//   this start and its lease    the first Call
//   a client                    its first open, or its RECLAIM_COMPLETE, is answered
//   that a client is gone       what it holds goes to another
//   that earlier starts are     the grace period ends
//
// Records are in SQLite (database.h) and written by the worker; what is asked for while it writes
// is written together, by the next transaction.
//
// Thread: any, unless a method is marked blocking: those are for the worker.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "base/brief_mutex.h"
#include "base/executor.h"
#include "base/loop.h"
#include "base/task.h"
#include "nfs/recovery/database.h"

namespace stag::nfs::recovery {

// Whether something is written: Busy: too much waits to be, ask again.
enum class Written : std::uint8_t { Yes, Busy, Failed };

class Recovery {
 public:
  // Reads the records at `path` and counts this start. Blocking. `worker` null: whoever asks writes
  // himself, for tests. Fails with one sentence.
  static Result<std::unique_ptr<Recovery>, std::string> open(const std::string& path,
                                                             std::uint32_t lease_seconds,
                                                             std::shared_ptr<Executor> worker);

  std::uint32_t epoch() const { return database_->epoch(); }
  // Seconds that clients of earlier starts may count on; 0 when there are none.
  std::uint32_t former_lease() const { return database_->former_lease(); }

  // Who was recorded by an earlier start and is not done with reclaiming.
  bool may_reclaim(const ClientOwner& owner) const;
  bool anybody_left() const;
  // The client has reclaimed what it wants. True: it was the last.
  bool completed(const ClientOwner& owner);
  // The grace period is over.
  void forget_former();

  // `asker` as of Executor::Job::client.
  Task<Written> add(state::ClientId client, ClientOwner owner, Loop& loop, const void* asker);
  Task<Written> remove(state::ClientId client, Loop& loop, const void* asker);
  // Sooner or later, for a client whose record does no harm.
  void remove_later(state::ClientId client);

  // Changes that wait to be written.
  std::size_t waiting() const;

  // Runs work that may block on the worker. False when too much waits: it does not run.
  bool offload(Executor::Function work);
  // Blocking. Logs what fails.
  bool write(const Change& change) { return commit(*enqueue(change)); }
  // Blocking. Earlier starts are gone from the records, or that failed and is logged.
  bool remove_former();
  // Until all that was given to offload() has run: for whoever it refers to and who comes to an
  // end. Blocking.
  void drain() const;

 private:
  struct Write {
    explicit Write(const Change& of) : change(of) {}
    const Change change;
    std::optional<bool> done{};  // with disk_ held
  };
  using WritePtr = std::shared_ptr<Write>;

  Recovery(std::unique_ptr<Database> database, std::shared_ptr<Executor> worker);
  WritePtr enqueue(const Change& change);
  bool commit(Write& write);
  bool commit_all();
  Task<Written> written(WritePtr write, Loop& loop, const void* asker);

  const std::unique_ptr<Database> database_;
  std::mutex disk_;  // held over system calls, by workers only
  mutable BriefMutex mutex_;
  std::set<ClientOwner> left_;  // of former(), who may still reclaim
  std::vector<WritePtr> queue_;
  mutable std::atomic<std::uint32_t> jobs_{0};
  const std::shared_ptr<Executor> worker_;  // the last: it ends before what its jobs use
};

}  // namespace stag::nfs::recovery
