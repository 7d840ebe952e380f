// Sharing: makes the locks and shares of NLM and those of NFSv4 exclude each other
// (docs/decisions/0037): each side asks the other before it adds something.
// Thread: any. A method marked "with the mutex" is called with the LockManager's mutex held.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "nfs/lock/lock_table.h"
#include "nfs/state/gate.h"

namespace stag::nfs::lock {

class Sharing final : public state::OutsideLocks {
 public:
  using Recheck = std::function<void(const FileKey* file)>;
  // All arguments outlive it. `recheck` is called without the mutex when NFSv4 released locks or
  // shares of a file, or (null) of any.
  Sharing(state::Gate& gate, std::mutex& mutex, const LockTable& table, Recheck recheck);
  ~Sharing() override;

  // With the mutex, before conflicts(): something may be added to the table.
  void begin();
  // With the mutex: whether the table holds anything, and whether a request is blocked.
  void note(bool holds, bool waits);
  // With the mutex: whether NFSv4 state conflicts with the request.
  bool conflicts(const LockRequest& request);
  bool conflicts(const FileKey& file, const Share& share);
  // The conflicting lock of NFSv4, as NLM describes it.
  std::optional<Held> holder(const LockRequest& request) const;
  // With the mutex: the expired NFSv4 clients whose state conflicted, for end().
  std::vector<state::ClientId> take_lapsed() { return std::exchange(lapsed_, {}); }
  // Without the mutex: ends the state of expired clients.
  void end(const std::vector<state::ClientId>& lapsed);

  bool any() const override { return any_.load(); }
  bool waiting() const override { return waiting_.load(); }
  void lock() override { mutex_.lock(); }
  void unlock() override { mutex_.unlock(); }
  std::optional<state::ConflictingLock> conflict(const FileKey& file, const Range& range,
                                                 bool exclusive) const override;
  bool share_conflict(const FileKey& file, std::uint32_t access, std::uint32_t deny) const override;
  bool concerns(const FileKey& file) const override { return table_.concerns(file); }
  void freed(const FileKey* file) override { recheck_(file); }

 private:
  bool in_the_way(const state::Verdict& verdict);

  state::Gate& gate_;
  state::Files& files_;
  std::mutex& mutex_;
  const LockTable& table_;
  const Recheck recheck_;
  std::atomic<bool> any_{false};
  std::atomic<bool> waiting_{false};
  std::vector<state::ClientId> lapsed_;
};

}  // namespace stag::nfs::lock
