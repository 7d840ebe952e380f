// Copies from other servers while they are read from, and how long these may take.
#include <mutex>

#include "nfs/v4/compound/shared_state.h"
#include "nfs/v4/ops/offload_job.h"
#include "nfs/v4/ops/patient_source.h"

namespace stag::nfs::nfs4 {
namespace {

// How long a synchronous COPY goes on: for less than a client waits for its answer.
constexpr Duration kSynchronously = std::chrono::seconds(20);

}  // namespace

const SourceServers* Offloads::sources() const {
  const bool none = shared_.copies == 0 || shared_.copies_of_client == 0;
  const std::lock_guard lock(mutex_);
  return none || sources_ == nullptr || !sources_->any() ? nullptr : sources_;
}

// What fails to connect may be there by another of its addresses.
Task<v4::nfsstat4> Offloads::open_source(Job& job, std::unique_ptr<SourceFile>& source) {
  job.began = callbacks_.home().now();
  v4::nfsstat4 status = v4::NFS4ERR_OFFLOAD_DENIED;
  for (const SourcePlace& place : job.work.source->places) {
    if (sources_ == nullptr || job.waits.cancelled() || given_up(job)) break;
    auto patient = std::make_unique<PatientSource>(callbacks_.home(), job.waits, place.at);
    status = co_await patient->open(*sources_, place, job.work.source->args);
    if (status != v4::NFS4_OK) continue;
    source = std::move(patient);
    const bool synchronous = job.work.source->synchronous;
    co_return co_await job.work.copy.read_from(*source,
                                               synchronous ? kLargestAnswer : ~std::uint64_t{0});
  }
  co_return status;
}

// While the source took its time, the client may have closed the file and others written it.
Task<v4::nfsstat4> Offloads::step_from_source(Job& job) {
  auto piece = co_await job.work.copy.next_piece();
  if (!piece) co_return piece.error();
  const v4::nfsstat4 status = co_await allow(job);
  if (status != v4::NFS4_OK || given_up(job)) co_return status;
  co_return co_await job.work.copy.write_piece(*std::move(piece));
}

// The client does not wait for it.
Task<void> Offloads::close_source(JobPtr job, std::unique_ptr<SourceFile> source) {
  try {
    if (source != nullptr) co_await source->close();
  } catch (const std::bad_alloc&) {
    // The source forgets this reader when its lease is over.
  }
  end_reading(job);
}

void Offloads::end_reading(const JobPtr& job) {
  const std::lock_guard lock(mutex_);
  reading_.erase(job);
}

bool Offloads::is_enough(const Job& job) const {
  if (!job.work.source || !job.work.source->synchronous) return false;
  return callbacks_.home().now() - job.began >= kSynchronously;
}

}  // namespace stag::nfs::nfs4
