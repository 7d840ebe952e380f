#include "nfs/v4/ops/offloads.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/check.h"
#include "base/failure.h"
#include "base/reason.h"
#include "nfs/v4/compound/shared_state.h"
#include "nfs/v4/compound/state_status.h"
#include "nfs/v4/ops/ranges.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

struct Offloads::Job {
  Job(OffloadedCopy&& of, const state::Stateid& named)
      : work(std::move(of)), stateid(named), to(key_of(work.copy.to())), count(work.copy.count()) {}

  OffloadedCopy work;
  const state::Stateid stateid;
  const state::FileKey to;
  std::atomic<std::uint64_t> count;
  std::atomic<bool> cancelled{false};
  // Under the mutex of Offloads:
  std::optional<v4::nfsstat4> complete{};
};

// CB_OFFLOAD, until the client has answered it.
class Offloads::EndNotice final : public PendingCallback {
 public:
  EndNotice(SharedState& shared, JobPtr job, v4::nfsstat4 status, TimePoint now)
      : PendingCallback(job->work.life->clientid, job->work.asked_by),
        shared_(shared),
        job_(std::move(job)),
        status_(status),
        until_(now + std::chrono::seconds(shared.options.lease_seconds)) {}
  // Answered, given up, or never sent because there was no memory.
  ~EndNotice() override {
    if (Offloads* const offloads = shared_.offloads.load(std::memory_order_acquire))
      offloads->forget(job_->stateid);
  }

  void fill(v4::nfs_cb_argop4& operation) const override {
    operation.argop = v4::OP_CB_OFFLOAD;
    v4::CB_OFFLOAD4args& args = operation.opcboffload();
    args.coa_fh =
        v4::nfs_fh4(shared_.server.handles
                        .seal(static_cast<std::uint32_t>(job_->to.file_system), job_->to.handle)
                        .bytes());
    args.coa_stateid = to_stateid4(job_->stateid);
    args.coa_offload_info.coa_status = status_;
    if (status_ != v4::NFS4_OK) {
      args.coa_offload_info.coa_bytes_copied() = job_->count.load();
      return;
    }
    v4::write_response4& copied = args.coa_offload_info.coa_resok4();
    copied.wr_count = job_->count.load();
    copied.wr_committed = static_cast<v4::stable_how4>(job_->work.copy.committed());
    store_be(copied.wr_writeverf.data(), job_->work.verifier);
  }
  Next answered(const CallbackOutcome& outcome, TimePoint) override {
    return outcome.operation == v4::NFS4ERR_DELAY ? Next::Later : Next::Ended;
  }
  bool is_over(TimePoint now) override { return now >= until_ || job_->work.life->ended(); }

 private:
  SharedState& shared_;
  const JobPtr job_;
  const v4::nfsstat4 status_;
  const TimePoint until_;
};

Offloads::Offloads(SharedState& shared, Callbacks& callbacks)
    : shared_(shared), callbacks_(callbacks) {
  shared_.offloads.store(this, std::memory_order_release);
}

Offloads::~Offloads() {
  shared_.offloads.store(nullptr, std::memory_order_release);
  STAG_CHECK(running_ == 0);
}

// Of another form than those of opens, which begin with the epoch itself.
state::Stateid Offloads::next_stateid() {
  state::Stateid stateid{.seqid = 1};
  const std::uint64_t number = ++last_;
  store_be(stateid.other.data(), ~shared_.epoch());
  store_be(stateid.other.data() + 4,
           siphash(process_sip_key(), std::as_bytes(std::span(&number, 1))));
  return stateid;
}

bool Offloads::has_room(state::ClientId client) const {
  const auto of_client = std::ranges::count_if(
      jobs_, [&](const auto& one) { return one.second->work.life->clientid == client; });
  return !stopping_ && jobs_.size() < kAll && of_client < shared_.options.copies_of_client;
}

bool Offloads::room_for(state::ClientId client) const {
  {
    const std::lock_guard lock(mutex_);
    if (!has_room(client)) return false;
  }
  return !shared_.clients.callback_paths(client).empty();
}

std::optional<state::Stateid> Offloads::begin(OffloadedCopy&& copy) {
  JobPtr job;
  {
    const std::lock_guard lock(mutex_);
    if (!has_room(copy.life->clientid)) return std::nullopt;
    job = std::make_shared<Job>(std::move(copy), next_stateid());
    job->work.copy.go_on_at(callbacks_.home(), job->work.life.get());
    jobs_.emplace(job->stateid.other, job);
  }
  try {
    callbacks_.home().post([this, job] { start(job); });
  } catch (const std::bad_alloc&) {
    forget(job->stateid);
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
  return theirs && !job->cancelled ? job : nullptr;
}

std::optional<Offloads::Progress> Offloads::status(const state::FileKey& to,
                                                   const state::Stateid& stateid,
                                                   state::ClientId client) const {
  const JobPtr job = find(to, stateid, client);
  if (job == nullptr) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return Progress{job->count.load(), job->complete};
}

bool Offloads::cancel(const state::FileKey& to, const state::Stateid& stateid,
                      state::ClientId client) {
  const JobPtr job = find(to, stateid, client);
  if (job == nullptr || job->cancelled.exchange(true)) return false;
  const std::lock_guard lock(mutex_);
  if (job->complete) jobs_.erase(job->stateid.other);
  return true;
}

void Offloads::forget(const state::Stateid& stateid) {
  const std::lock_guard lock(mutex_);
  jobs_.erase(stateid.other);
}

void Offloads::stop(UniqueFunction<void()> done) {
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

// Nobody would be told how it went on.
bool Offloads::given_up(const Job& job) const {
  return job.cancelled || stopping_ || job.work.life->phase.load() != state::Life::Phase::Active ||
         shared_.clients.callback_paths(job.work.life->clientid).empty();
}

v4::nfsstat4 Offloads::check(const Job& job) const {
  const auto refused = [&](const ExportObject& object, const v4::stateid4& stateid,
                           state::Touch touch) {
    // Others may have changed its seqid since.
    const bool bypass = stateid.other == state::kBypassStateid.other;
    const state::Stateid meant = bypass ? state::kBypassStateid : state::Stateid{0, stateid.other};
    const state::Verdict verdict =
        shared_.files.check(key_of(object), meant, *job.work.life, touch);
    return verdict.kind == state::Verdict::Kind::Refused ? to_nfsstat4(verdict.status)
                                                         : v4::NFS4_OK;
  };
  const v4::nfsstat4 status =
      refused(job.work.copy.from(), job.work.from_stateid, state::Touch::Read);
  if (status != v4::NFS4_OK) return status;
  return refused(job.work.copy.to(), job.work.to_stateid, state::Touch::Write);
}

Task<v4::nfsstat4> Offloads::copy_all(Job& job) {
  FileCopy& copy = job.work.copy;
  while (!copy.done() && !given_up(job)) {
    if (const v4::nfsstat4 status = check(job); status != v4::NFS4_OK) co_return status;
    if (const auto fault = co_await copy.step()) co_return co_await copy_status(copy, *fault);
    job.count = copy.count();
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
    forget(job->stateid);
  }
}

Task<void> Offloads::run(JobPtr job) {
  ++running_;
  v4::nfsstat4 status = v4::NFS4ERR_SERVERFAULT;
  try {
    status = co_await copy_all(*job);
  } catch (...) {
    trace_exception(Reason::TaskFailed);
  }
  try {
    finish(job, status);
  } catch (const std::bad_alloc&) {
    forget(job->stateid);
  }
  if (--running_ == 0 && stopped_) std::exchange(stopped_, {})();
}

void Offloads::finish(const JobPtr& job, v4::nfsstat4 status) {
  const bool given_up_early = !job->work.copy.done() && status == v4::NFS4_OK;
  {
    const std::lock_guard lock(mutex_);
    if (job->cancelled || given_up_early) {
      jobs_.erase(job->stateid.other);
      return;
    }
    job->complete = status;
  }
  callbacks_.tell({CallbackKey::Kind::Offload, job->stateid.other},
                  std::make_unique<EndNotice>(shared_, job, status, callbacks_.home().now()));
}

}  // namespace stag::nfs::nfs4
