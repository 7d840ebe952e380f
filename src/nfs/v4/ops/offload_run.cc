// How a copy goes on after its COPY was answered, piece by piece, to its end.
#include "base/failure.h"
#include "base/reason.h"
#include "nfs/v4/compound/shared_state.h"
#include "nfs/v4/compound/state_status.h"
#include "nfs/v4/ops/offload_job.h"

namespace stag::nfs::nfs4 {

// The client is not told how it ended.
bool Offloads::given_up(const Job& job) const {
  return job.cancelled || stopping_ || job.work.life->ended();
}

v4::nfsstat4 Offloads::check(const Job& job) const {
  const auto refused = [&](const ExportObject& object, const v4::stateid4& stateid,
                           state::Touch touch) {
    // Others may have changed its seqid since.
    const bool bypass = stateid.other == state::kBypassStateid.other;
    const state::Stateid meant = bypass ? state::kBypassStateid : state::Stateid{0, stateid.other};
    const state::Verdict verdict = shared_.files.check(object.key(), meant, *job.work.life, touch);
    // What was delegated since, without an open of ours that forbids it, is wanted back.
    if (verdict.kind == state::Verdict::Kind::Recall)
      shared_.files.recall(object.key(), touch, job.work.life.get());
    return verdict.kind == state::Verdict::Kind::Refused ? to_nfsstat4(verdict.status)
                                                         : v4::NFS4_OK;
  };
  // A client that comes back in time hears of it.
  if (job.work.life->lapsed()) return v4::NFS4ERR_EXPIRED;
  if (!job.work.source) {
    const v4::nfsstat4 status =
        refused(job.work.copy.from(), job.work.from_stateid, state::Touch::Read);
    if (status != v4::NFS4_OK) return status;
  }
  return refused(job.work.copy.to(), job.work.to_stateid, state::Touch::Write);
}

// NFS4_OK: the next piece may be copied now.
Task<v4::nfsstat4> Offloads::allow(Job& job) const {
  const v4::nfsstat4 status = co_await admit_patiently(job);
  co_return status == v4::NFS4_OK ? check(job) : status;
}

Task<v4::nfsstat4> Offloads::copy_all(Job& job) {
  FileCopy& copy = job.work.copy;
  const state::FileChange change = std::move(job.work.change);
  while (!copy.done() && !given_up(job) && !is_enough(job)) {
    v4::nfsstat4 status = co_await allow(job);
    if (status == v4::NFS4_OK && job.work.source)
      status = co_await step_from_source(job);
    else if (status == v4::NFS4_OK)
      status = co_await copy.step();
    if (status != v4::NFS4_OK) co_return status;
    job.count = copy.count();
    note_piece(job);
    // Others have their turn between two pieces.
    co_await resume_on(callbacks_.home());
  }
  co_return v4::NFS4_OK;
}

// Without memory the copy ends here: its stateid is nobody's any more.
void Offloads::start(const JobPtr& job) {
  try {
    detach(run(job));
  } catch (const std::bad_alloc&) {
    abandon(job);
    end_reading(job);
  }
}

Task<void> Offloads::run(JobPtr job) {
  ++running_;
  v4::nfsstat4 status = v4::NFS4ERR_SERVERFAULT;
  std::unique_ptr<SourceFile> source;
  try {
    status = v4::NFS4_OK;
    if (job->work.source) status = co_await open_source(*job, source);
    if (status == v4::NFS4_OK) status = co_await copy_all(*job);
  } catch (...) {
    status = v4::NFS4ERR_SERVERFAULT;
    trace_exception(Reason::TaskFailed);
  }
  // Until its client is told, which may take long, it keeps no file system in use.
  job->work.copy.end();
  try {
    finish(job, status);
  } catch (const std::bad_alloc&) {
    abandon(job);
  }
  // What it has asked for and not waited for is wanted by nobody. This takes no memory.
  if (ReadAhead* const reading = job->work.copy.reading()) {
    if (!reading->idle()) job->waits.cancel();
    while (!reading->idle()) {
      const auto pending = reading->take();
      static_cast<void>(co_await pending->came);
    }
  }
  if (job->work.source) co_await close_source(job, std::move(source));
  if (--running_ == 0 && stopped_) std::exchange(stopped_, {})();
}

}  // namespace stag::nfs::nfs4
