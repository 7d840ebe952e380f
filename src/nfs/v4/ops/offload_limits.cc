// Whether one more copy may go on after its answer.
#include <algorithm>
#include <mutex>

#include "nfs/v4/compound/shared_state.h"
#include "nfs/v4/ops/offload_job.h"
#include "nfs/v4/ops/offloads.h"

namespace stag::nfs::nfs4 {

// With the mutex held.
state::Limit Offloads::limit_held(state::ClientId client) const {
  const auto of_client = std::ranges::count_if(
      jobs_, [&](const auto& one) { return one.second->work.life->clientid == client; });
  if (of_client >= shared_.options.copies_of_client) return state::Limit::Client;
  return jobs_.size() < shared_.options.copies ? state::Limit::None : state::Limit::All;
}

state::Limit Offloads::limit_at(state::ClientId client) const {
  const std::lock_guard lock(mutex_);
  return limit_held(client);
}

bool Offloads::can_tell(state::ClientId client) const {
  if (shared_.options.copies == 0 || shared_.options.copies_of_client == 0) return false;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
  }
  return !shared_.clients.callback_paths(client).empty();
}

}  // namespace stag::nfs::nfs4
