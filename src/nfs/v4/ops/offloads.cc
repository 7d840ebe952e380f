#include "nfs/v4/ops/offloads.h"

#include <mutex>

#include "base/check.h"
#include "nfs/v4/compound/shared_state.h"
#include "nfs/v4/ops/offload_job.h"

namespace stag::nfs::nfs4 {

Offloads::Offloads(SharedState& shared, Callbacks& callbacks, SourceServers* sources)
    : shared_(shared), callbacks_(callbacks), sources_(sources) {
  shared_.offloads.store(this, std::memory_order_release);
}

Offloads::~Offloads() {
  shared_.offloads.store(nullptr, std::memory_order_release);
  STAG_CHECK(running_ == 0);
}

// As of CopyNotices.
state::Stateid Offloads::next_stateid() {
  state::Stateid stateid{.seqid = 1};
  const std::uint64_t number = ++last_;
  SipHash hash(process_sip_key());
  hash.add(bytes_of("COPY"));
  hash.add(std::as_bytes(std::span(&number, 1)));
  store_be(stateid.other.data(), static_cast<std::uint16_t>(~shared_.epoch()));
  store_be(stateid.other.data() + 4, hash.finish());
  return stateid;
}

std::optional<state::Stateid> Offloads::begin(OffloadedCopy&& copy) {
  JobPtr job;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || limit_held(copy.life->clientid) != state::Limit::None) return std::nullopt;
    job = std::make_shared<Job>(std::move(copy), next_stateid());
    job->go_on_at(callbacks_.home());
    if (job->work.source) reading_.insert(job);
    try {
      jobs_.emplace(job->stateid.other, job);
    } catch (const std::bad_alloc&) {
      reading_.erase(job);
      throw;
    }
  }
  try {
    callbacks_.home().post([this, job] { start(job); });
  } catch (const std::bad_alloc&) {
    forget(job->stateid);
    end_reading(job);
    return std::nullopt;
  }
  return job->stateid;
}

Offloads::JobPtr Offloads::find(const state::FileKey& to, const state::Stateid& stateid,
                                state::ClientId client) const {
  const std::lock_guard lock(mutex_);
  const auto found = jobs_.find(stateid.other);
  if (found == jobs_.end() || stateid.seqid != found->second->stateid.seqid) return nullptr;
  const JobPtr& job = found->second;
  const bool theirs = job->work.life->clientid == client && job->to == to;
  return theirs ? job : nullptr;
}

std::optional<Offloads::Progress> Offloads::status(const state::FileKey& to,
                                                   const state::Stateid& stateid,
                                                   state::ClientId client) const {
  const JobPtr job = find(to, stateid, client);
  if (job == nullptr || job->cancelled) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return Progress{job->count.load(), job->complete};
}

bool Offloads::cancel(const state::FileKey& to, const state::Stateid& stateid,
                      state::ClientId client) {
  const JobPtr job = find(to, stateid, client);
  if (job == nullptr) return false;
  end_early(job);
  return true;
}

state::Wait Offloads::wait(const state::Stateid& stateid, UniqueFunction<void()> stopped) {
  const std::lock_guard lock(mutex_);
  const auto found = jobs_.find(stateid.other);
  if (found == jobs_.end()) return state::Wait::NoNeed;
  std::swap(found->second->stopped, stopped);
  return state::Wait::Begun;
}

void Offloads::stop(UniqueFunction<void()> done) {
  stop_sources();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stopped_ = std::move(done);
  // Behind those that were asked for and have not begun.
  callbacks_.home().post([this] {
    if (running_ == 0 && stopped_) std::exchange(stopped_, {})();
  });
}

}  // namespace stag::nfs::nfs4
