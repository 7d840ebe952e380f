// What the COPY of a copy from another server waits for, and is answered.
#include <mutex>

#include "nfs/v4/ops/offload_job.h"

namespace stag::nfs::nfs4 {

void Offloads::note_piece(Job& job) {
  if (!job.work.source || job.work.source->synchronous || job.work.copy.done()) return;
  // Given up before its first piece was written.
  if (job.count == 0) return;
  UniqueFunction<void()> ready;
  {
    const std::lock_guard lock(mutex_);
    job.answerable = true;
    ready = std::move(job.ready);
  }
  if (ready) ready();
}

state::Wait Offloads::answerable(const state::Stateid& stateid, UniqueFunction<void()> ready) {
  const std::lock_guard lock(mutex_);
  const auto found = jobs_.find(stateid.other);
  if (found == jobs_.end() || found->second->answerable) return state::Wait::NoNeed;
  found->second->ready = std::move(ready);
  return state::Wait::Begun;
}

// What was copied before a fault is told, and the fault to the one who asks for the rest.
Offloads::Answer Offloads::answer(const state::Stateid& stateid) {
  const std::lock_guard lock(mutex_);
  const auto found = jobs_.find(stateid.other);
  if (found == jobs_.end()) return {.status = v4::NFS4ERR_SERVERFAULT};
  const JobPtr job = found->second;
  if (job->cancelled) return {.status = v4::NFS4ERR_SERVERFAULT};
  Answer answer{.count = job->count.load()};
  job->awaited = false;
  answer.goes_on = !job->complete;
  if (answer.goes_on) return answer;
  jobs_.erase(found);
  answer.committed = job->work.copy.committed();
  if (answer.count != 0) return answer;
  answer.status = *job->complete;
  const bool ended_early = answer.status == v4::NFS4_OK && !job->work.copy.done();
  if (ended_early) answer.status = v4::NFS4ERR_OFFLOAD_DENIED;
  return answer;
}

void Offloads::give_up(const state::Stateid& stateid) {
  JobPtr job;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = jobs_.find(stateid.other); found != jobs_.end()) job = found->second;
  }
  if (job != nullptr) end_early(job);
}

}  // namespace stag::nfs::nfs4
