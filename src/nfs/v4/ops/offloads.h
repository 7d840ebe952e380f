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
// Thread: can_go_on(), begin(), status(), cancel(), wait(), answerable(), answer() and give_up()
// any; the copies themselves the loop of Callbacks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "base/brief_mutex.h"
#include "nfs/v4/callback/callbacks.h"
#include "nfs/v4/ops/offloaded_copy.h"

namespace stag::nfs::nfs4 {

class Offloads {
 public:
  using Progress = OffloadProgress;
  using Answer = OffloadAnswer;

  // `callbacks` and `sources` outlive it. Null: nothing is copied from other servers.
  Offloads(SharedState& shared, Callbacks& callbacks, SourceServers* sources);
  ~Offloads();
  Offloads(const Offloads&) = delete;

  // Null: nothing is copied from other servers, or no more.
  const SourceServers* sources() const;
  // Whether this COPY may go on after its answer: its client lets it, and would hear of the end.
  Task<bool> can_go_on(Compound& compound, const v4::COPY4args& args) const;
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
  // `ready` is run once answer() may be asked for; on home.
  state::Wait answerable(const state::Stateid& stateid, UniqueFunction<void()> ready);
  // Afterwards what has not ended goes on, and the client is told of its end.
  Answer answer(const state::Stateid& stateid);
  // No operation asks for the answer, or none can be given: it ends, and the client is not told.
  void give_up(const state::Stateid& stateid);
  // The client knows that it ended, or nobody cares any more.
  void forget(const state::Stateid& stateid);

  // Copies from other servers end now, and none begins any more: they would wait for others. Home.
  void stop_sources();
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
  void end_early(const JobPtr& job);
  void cancel_source(const JobPtr& job);
  JobPtr next_to_cancel() const;
  Task<void> run(JobPtr job);
  Task<v4::nfsstat4> copy_all(Job& job);
  // Copies from other servers (offload_source.cc, offload_answer.cc).
  Task<v4::nfsstat4> open_source(Job& job, std::unique_ptr<SourceFile>& source);
  Task<void> close_source(JobPtr job, std::unique_ptr<SourceFile> source);
  void end_reading(const JobPtr& job);
  bool is_enough(const Job& job) const;
  void note_piece(Job& job);
  bool given_up(const Job& job) const;
  v4::nfsstat4 admit(Job& job) const;
  Task<v4::nfsstat4> admit_patiently(Job& job) const;
  v4::nfsstat4 check(const Job& job) const;
  Task<v4::nfsstat4> allow(Job& job) const;
  Task<v4::nfsstat4> step_from_source(Job& job);
  void finish(const JobPtr& job, v4::nfsstat4 status);
  void abandon(const JobPtr& job);

  SharedState& shared_;
  Callbacks& callbacks_;
  mutable BriefMutex mutex_;
  std::map<std::array<std::byte, 12>, JobPtr> jobs_;
  std::uint64_t last_ = 0;
  std::size_t running_ = 0;  // on home
  // From other servers, until these are read from no more: after their end, too.
  std::set<JobPtr> reading_;
  bool stopping_ = false;
  SourceServers* sources_;  // null: none
  UniqueFunction<void()> stopped_;
};

}  // namespace stag::nfs::nfs4
