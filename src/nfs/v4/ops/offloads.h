// Copies that go on after their COPY was answered (RFC 7862 4.2, 15.2). Each is named by a stateid
// of its own, and copies piece by piece on the store's workers; its client is told of the end by
// CB_OFFLOAD, and may look at it or stop it meanwhile. There are few: beyond, COPY does what it can
// before it is answered.
//
// A copy ends with its client or the client's lease, with the opens that its stateids are of, where
// the exports refuse it by now, and with the server: after a restart its stateid is BAD_STATEID,
// and what was copied is there. It goes on without a session, which clients exchange for another
// one. It is remembered until the client has answered CB_OFFLOAD, by whatever session, or for a
// lease after its end.
//
// Thread: begin(), status(), cancel() and wait() any; the copies themselves the loop of Callbacks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "base/brief_mutex.h"
#include "nfs/v4/callback/callbacks.h"
#include "nfs/v4/ops/file_copy.h"

namespace stag::nfs::nfs4 {

// What COPY leaves to go on.
struct OffloadedCopy {
  FileCopy copy;
  std::shared_ptr<const Exports> exports;  // that its objects are of
  // The COPY's, by which the exports admit the next pieces.
  rpc::Origin origin;
  rpc::Caller caller;
  state::LifePtr life;
  state::SlotRef asked_by;
  // What allows it, checked between any two pieces.
  v4::stateid4 from_stateid, to_stateid;
  std::uint64_t verifier = 0;  // of what it writes
  state::FileChange change;    // of the file it writes, from the COPY on
};

class Offloads {
 public:
  struct Progress {
    std::uint64_t count = 0;                 // bytes
    std::optional<v4::nfsstat4> complete{};  // how it ended
  };

  // `callbacks` outlives it.
  Offloads(SharedState& shared, Callbacks& callbacks);
  ~Offloads();
  Offloads(const Offloads&) = delete;

  // Whether copies go on at all, and the client would be told of their end.
  bool can_tell(state::ClientId client) const;
  // What keeps the client from having one more; None: nothing.
  state::Limit limit_at(state::ClientId client) const;
  // nullopt: it may not.
  std::optional<state::Stateid> begin(OffloadedCopy&& copy);
  // nullopt: the client has no such copy to this file.
  std::optional<Progress> status(const state::FileKey& to, const state::Stateid& stateid,
                                 state::ClientId client) const;
  // No piece follows the one that is being copied. False: the client has no such copy to this file.
  bool cancel(const state::FileKey& to, const state::Stateid& stateid, state::ClientId client);
  // `stopped` is run once it was cancelled and writes no more; the one of who asks last. On home.
  state::Wait wait(const state::Stateid& stateid, UniqueFunction<void()> stopped);
  // The client knows that it ended, or nobody cares any more.
  void forget(const state::Stateid& stateid);

  // From now on every copy ends with its next piece; `done` runs on home when none is left. Home.
  void stop(UniqueFunction<void()> done);

 private:
  struct Job;
  using JobPtr = std::shared_ptr<Job>;
  class EndNotice;

  state::Stateid next_stateid();
  JobPtr find(const state::FileKey& to, const state::Stateid& stateid,
              state::ClientId client) const;
  state::Limit limit_held(state::ClientId client) const;
  void start(const JobPtr& job);
  Task<void> run(JobPtr job);
  Task<v4::nfsstat4> copy_all(Job& job);
  bool given_up(const Job& job) const;
  v4::nfsstat4 admit(Job& job) const;
  Task<v4::nfsstat4> admit_patiently(Job& job) const;
  v4::nfsstat4 check(const Job& job) const;
  void finish(const JobPtr& job, v4::nfsstat4 status);

  SharedState& shared_;
  Callbacks& callbacks_;
  mutable BriefMutex mutex_;
  std::map<std::array<std::byte, 12>, JobPtr> jobs_;
  std::uint64_t last_ = 0;
  std::size_t running_ = 0;  // on home
  bool stopping_ = false;
  UniqueFunction<void()> stopped_;
};

}  // namespace stag::nfs::nfs4
