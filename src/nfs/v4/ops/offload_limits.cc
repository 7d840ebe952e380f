// Whether one more copy may go on after its answer.
#include <mutex>

#include "nfs/v4/compound/shared_state.h"
#include "nfs/v4/ops/callback_path.h"
#include "nfs/v4/ops/offload_job.h"
#include "nfs/v4/ops/offloads.h"

namespace stag::nfs::nfs4 {

// With the mutex held. What holds a connection to its source counts, though it has been answered.
state::Limit Offloads::limit_held(state::ClientId client) const {
  std::size_t all = 0, of_client = 0;
  const auto count = [&](const Job& job) {
    ++all;
    if (job.work.life->clientid == client) ++of_client;
  };
  for (const auto& [name, job] : jobs_) count(*job);
  for (const JobPtr& job : reading_)
    if (!jobs_.contains(job->stateid.other)) count(*job);
  if (of_client >= shared_.copies_of_client) return state::Limit::Client;
  return all < shared_.copies ? state::Limit::None : state::Limit::All;
}

state::Limit Offloads::limit_at(state::ClientId client) const {
  const std::lock_guard lock(mutex_);
  return limit_held(client);
}

Task<bool> Offloads::can_go_on(Compound& compound, const v4::COPY4args& args) const {
  if (args.ca_synchronous || shared_.copies == 0 || shared_.copies_of_client == 0) co_return false;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) co_return false;
  }
  co_return co_await can_call_back(compound);
}

}  // namespace stag::nfs::nfs4
