// CB_OFFLOAD (RFC 7862 16.1): the client is told that its copy has ended.
#pragma once

#include "nfs/v4/compound/shared_state.h"
#include "nfs/v4/ops/offload_job.h"

namespace stag::nfs::nfs4 {

// Until the client has answered it.
class Offloads::EndNotice final : public PendingCallback {
 public:
  EndNotice(SharedState& shared, JobPtr job, v4::nfsstat4 status, TimePoint now)
      : PendingCallback(job->work.life->clientid, job->work.asked_by, job->to),
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
    args.coa_fh = v4::nfs_fh4(shared_.server.handles.seal(job_->to.via, job_->to.handle).bytes());
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

}  // namespace stag::nfs::nfs4
