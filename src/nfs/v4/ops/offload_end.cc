// The end of a copy that goes on: how it is brought about, and whom it is told.
#include <algorithm>
#include <mutex>

#include "nfs/v4/ops/offload_notice.h"

namespace stag::nfs::nfs4 {

void Offloads::finish(const JobPtr& job, v4::nfsstat4 status) {
  const bool given_up_early = !job->work.copy.done() && status == v4::NFS4_OK;
  UniqueFunction<void()> stopped, ready;
  bool told = false;
  {
    const std::lock_guard lock(mutex_);
    stopped = std::move(job->stopped);
    ready = std::move(job->ready);
    job->answerable = true;
    told = !job->awaited && !job->cancelled && !given_up_early;
    if (told || job->awaited)
      job->complete = status;
    else
      jobs_.erase(job->stateid.other);
  }
  if (stopped) stopped();
  if (ready) ready();
  if (!told) return;
  callbacks_.tell({CallbackKey::Kind::Offload, job->stateid.other},
                  std::make_unique<EndNotice>(shared_, job, status, callbacks_.home().now()));
}

// Its COPY is told, if it waits.
void Offloads::abandon(const JobPtr& job) {
  UniqueFunction<void()> ready;
  {
    const std::lock_guard lock(mutex_);
    job->complete = v4::NFS4ERR_SERVERFAULT;
    job->answerable = true;
    ready = std::move(job->ready);
    if (!job->awaited) jobs_.erase(job->stateid.other);
  }
  if (ready) ready();
}

void Offloads::forget(const state::Stateid& stateid) {
  const std::lock_guard lock(mutex_);
  jobs_.erase(stateid.other);
}

void Offloads::end_early(const JobPtr& job) {
  job->cancelled = true;
  if (job->work.source) cancel_source(job);
  const std::lock_guard lock(mutex_);
  job->awaited = false;
  if (job->complete) jobs_.erase(job->stateid.other);
}

// Without memory it ends when its time is over.
void Offloads::cancel_source(const JobPtr& job) {
  try {
    callbacks_.home().post([job] { job->waits.cancel(); });
  } catch (const std::bad_alloc&) {
  }
}

void Offloads::stop_sources() {
  {
    const std::lock_guard lock(mutex_);
    sources_ = nullptr;
  }
  // One by one, which takes no memory: what is cancelled may end at once.
  while (const JobPtr job = next_to_cancel()) job->waits.cancel();
}

Offloads::JobPtr Offloads::next_to_cancel() const {
  const std::lock_guard lock(mutex_);
  const auto next =
      std::ranges::find_if(reading_, [](const JobPtr& job) { return !job->waits.cancelled(); });
  return next == reading_.end() ? nullptr : *next;
}

}  // namespace stag::nfs::nfs4
