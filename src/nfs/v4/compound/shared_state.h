// What all COMPOUNDs of a server share: its clients and what they hold, its exports as a pseudo
// file system, its limits.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>

#include "base/brief_mutex.h"
#include "base/network.h"
#include "base/unique_function.h"
#include "nfs/export/server_context.h"
#include "nfs/proto/nfs4.h"
#include "nfs/recovery/recovery.h"
#include "nfs/state/clients.h"
#include "nfs/state/copy_notices.h"
#include "nfs/state/files.h"
#include "nfs/state/owners.h"
#include "nfs/v4/attributes/id_map.h"
#include "nfs/v4/compound/callback_networks.h"
#include "nfs/v4/compound/pseudo_fs.h"
#include "rpc/replay_cache.h"

namespace stag::nfs::nfs4 {

inline constexpr std::uint32_t kLastMinor = 2;  // the first is 0

struct Nfs4Options {
  std::uint32_t lease_seconds = 90;
  state::ClientLimits clients{};
  state::StateLimits states{};
  // For how long clients whose lease has run out keep what they hold, unless another wants it.
  std::uint32_t courtesy_seconds = 24 * 60 * 60;
  // That go on after they were answered; 0: none does.
  std::uint32_t copies = 64;
  std::uint32_t copies_of_client = 8;
  // What survives a restart; null: nothing. Outlives the server.
  recovery::Recovery* recovery = nullptr;
  // Where a client of version 4.0 may have itself called back besides its own address.
  std::vector<IpNetwork> callback_networks{};
  // False: clients of versions 4.1 and 4.2 are called on connections over TCP alone, which they
  // bind to their sessions (RFC 8881 2.10.3.1).
  bool rdma_callbacks = true;
  // Null: owners are numbers.
  std::shared_ptr<IdMap> id_map{};
  // Shared with the others that give locks out; begun by the code that starts the server.
  std::shared_ptr<state::GracePeriod> grace = std::make_shared<state::GracePeriod>();
};

class Callbacks;
class LapsedLocks;
class LeaseTimer;
class Offloads;

// Busy: its record is being removed just now, or too many wait for that: ask again. Failed: its
// record could not be removed, and it is still there.
enum class EndedByAdmin : std::uint8_t { Yes, Unknown, Busy, Failed };

using state::EndedFor;

// Thread: any. Constant but for its parts, which have locks of their own.
class SharedState {
 public:
  // `context` outlives it.
  SharedState(const ServerContext& context, const Nfs4Options& wanted);
  // After the last Call has ended.
  ~SharedState();

  const ServerContext& server;
  // As the server was started; the parts below have what Nfs4Server::change() replaces.
  const Nfs4Options options;
  state::Clients clients;
  state::Files files;
  state::CopyNotices copy_notices;
  std::atomic<std::uint32_t> copies = options.copies, copies_of_client = options.copies_of_client;
  CallbackNetworks callback_networks{options.callback_networks};
  // Of version 4.0, which has no sessions.
  state::Owners owners;
  rpc::ReplayCache replays;
  // To stores, of READDIR, some of which nobody waits for any more: how many are open. They may
  // outlive it.
  const std::shared_ptr<std::atomic<std::size_t>> questions =
      std::make_shared<std::atomic<std::size_t>>(0);
  // Null: clients are not called, and get no delegations.
  std::atomic<Callbacks*> callbacks{nullptr};
  // Called with expire(); set before the first Call.
  UniqueFunction<void()> now_and_then;
  // Null: leases run out when some client calls.
  std::atomic<LeaseTimer*> lease_timer{nullptr};
  // Null: who lapses with locks that programs of this machine run into is ended at once.
  std::atomic<LapsedLocks*> lapsed_locks{nullptr};
  // Null: copies are done before they are answered.
  std::atomic<Offloads*> offloads{nullptr};

  // Of this start of the server: another one each time.
  std::uint32_t epoch() const;

  // Of the present exports.
  std::shared_ptr<const PseudoFs> pseudo_fs();
  // Lets leases run out, and ends clients that nobody waits for any more; once a second at most,
  // however often it is called.
  void expire(TimePoint now);
  // Wants back the delegations of exports that are gone: clients would keep their files open, and
  // so the disk in use, as long as they live. What fails for want of memory is done by expire().
  void recall_removed() noexcept;
  // The server could not send a Recall after all.
  void recall_again(const state::Stateid& delegation);
  // A client was confirmed, whose lease runs out even if no client calls any more, or a grace
  // period has begun, which ends likewise.
  void watch_leases();
  // Ends a client that lapsed: at once where nothing is recorded, else when its record is gone.
  // Whether it is gone.
  bool end_lapsed(state::ClientId client, EndedFor why);
  // Has a client that lapsed make room for one that has reached a limit. True: ask again.
  bool make_room(state::Limit reached, state::Shortage of, const state::Life& asks);
  // Ends any client, once its record is gone. `done` runs once, on whatever thread.
  void end_by_admin(state::ClientId client, TimePoint now, UniqueFunction<void(EndedByAdmin)> done);
  // Runs `take`, which revokes something of the client, once the client has no record by which it
  // could claim that after a restart. False, and logged: that cannot be written. Blocking.
  bool revoke(state::Life& life, UniqueFunction<void()> take) const;
  // Of a client that ended: what it held is free. Null is nobody.
  void release(const state::LifePtr& ended);

  // A client that has just been confirmed, or wants to claim something: whether it may claim what
  // it had before a restart, or at a server whose clients were adopted.
  bool admit(state::Life& life) const;
  // As the records name it; nullopt: it is gone.
  std::optional<recovery::ClientOwner> owner_of(state::ClientId client) const;
  // NFS4_OK once the client is in the records, so that it may be given something.
  Task<v4::nfsstat4> record(state::Life& life, Loop& loop, const void* asker);
  // Of a client that has said, after the grace period, that it has no more to claim.
  static void not_cut_off(state::Life& life);
  // It claims nothing any more: perhaps it was the last one.
  void completed(const state::Life& life, TimePoint now);
  // The same of one that goes on after its record was removed. Blocking.
  void record_again(const state::LifePtr& life, recovery::ClientOwner owner);
  // DESTROY_CLIENTID; the record goes, too.
  Task<state::Status> destroy(state::ClientId client, Loop& loop, const void* asker);
  // Has the next start wait for nobody who holds nothing now. After the last Call has ended.
  // Blocking.
  void remove_idle_records() const;

 private:
  void recall_unserved();
  void free_state(const state::Life& ended);
  void remove_record(state::ClientId ended);
  void make_way_for_programs(const state::LifePtr& life);
  // Whether it has locks that programs of this machine run into, who cannot ask for its end.
  bool keeps_programs_out(const state::Life& life) const;
  void completed(const std::optional<recovery::ClientOwner>& owner, TimePoint now);
  void end_recorded(const state::LifePtr& life, EndedFor why);
  bool end_now(state::ClientId client, EndedFor why, const recovery::ClientOwner* claims = nullptr);
  EndedByAdmin end_recorded_by_admin(state::Life& life, TimePoint now);
  void finish_grace(std::uint64_t number, TimePoint now);
  void finish_recorded_grace(std::uint64_t number, TimePoint now);

  const LocalLockTable::SourceId local_locks_;
  std::atomic<bool> unrecalled_{false};         // recall_removed() has not done all that it should
  std::atomic<TimePoint::rep> next_expiry_{0};  // as time since the clock's zero
  BriefMutex mutex_;
  std::weak_ptr<const Exports> exports_;  // that pseudo_fs_ was made of
  std::shared_ptr<const PseudoFs> pseudo_fs_;
};

}  // namespace stag::nfs::nfs4
