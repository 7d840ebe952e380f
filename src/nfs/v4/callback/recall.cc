#include "nfs/v4/callback/recall.h"

#include <memory>
#include <new>
#include <utility>

#include "base/reason.h"
#include "nfs/v4/compound/shared_state.h"

namespace stag::nfs::nfs4 {

namespace {

// A client that does not know its delegation yet: the OPEN's Reply is on its way.
constexpr Duration kGrantTravels = std::chrono::seconds(2);
// Linux, told to come later, does so after 15 seconds at most.
constexpr Duration kOthersComeAgain = std::chrono::seconds(30);
constexpr Duration kNoneForWhoKeepsThem = std::chrono::minutes(5);
// For so long in all revocation is put off: who has the names of its own address answered by nobody
// keeps others out no longer.
constexpr Duration kPutOffAtMost = std::chrono::minutes(5);

// As the holder knows it.
v4::nfs_fh4 handle_of(const SharedState& shared, const state::FileKey& file) {
  return v4::nfs_fh4(shared.server.handles.seal(file.via, file.handle).bytes());
}

}  // namespace

DelegationRecall::DelegationRecall(SharedState& shared, const state::Recall& recall, TimePoint now)
    : PendingCallback(recall.clientid, recall.granted_by, recall.file),
      shared_(shared),
      recall_(recall),
      asked_(now),
      until_(now + std::chrono::seconds(shared.options.lease_seconds)) {
  shared_.files.hold_back(recall_.file, now + kOthersComeAgain);
}

void DelegationRecall::put_off(TimePoint now) {
  const TimePoint lease = asked_ + std::chrono::seconds(shared_.options.lease_seconds);
  until_ = std::max(until_, std::min(now + kOthersComeAgain, lease + kPutOffAtMost));
}

void DelegationRecall::fill(v4::nfs_cb_argop4& operation) const {
  operation.argop = v4::OP_CB_RECALL;
  v4::CB_RECALL4args& args = operation.opcbrecall();
  args.stateid = {recall_.stateid.seqid, recall_.stateid.other};
  args.fh = handle_of(shared_, recall_.file);
}

PendingCallback::Next DelegationRecall::answered(const CallbackOutcome& outcome, TimePoint now) {
  if (outcome.operation == v4::NFS4ERR_DELAY) return Next::Later;
  const bool unknown =
      outcome.operation == v4::NFS4ERR_BAD_STATEID || outcome.operation == v4::NFS4ERR_BADHANDLE;
  return unknown && now < asked_ + kGrantTravels ? Next::Later : Next::Answered;
}

bool DelegationRecall::is_over(TimePoint now) {
  shared_.files.hold_back(recall_.file, now + kOthersComeAgain);
  if (!shared_.files.is_delegated(recall_.stateid)) return true;
  if (now < until_) return false;
  revoke(now);
  return !shared_.files.is_delegated(recall_.stateid);
}

// Not yet revoked is what waits for the records or for memory; is_over() tries again. Many of one
// client are revoked at once: only the first writes.
void DelegationRecall::revoke(TimePoint now) try {
  const auto take = [&shared = shared_, recall = recall_] {
    shared.files.revoke_delegation(recall.stateid);
    trace(Reason::DelegationRevoked, std::to_string(recall.clientid));
  };
  const state::LifePtr life = shared_.clients.life(recall_.clientid);
  if (life == nullptr) return take();
  life->no_delegation_before.store(now + kNoneForWhoKeepsThem);
  recovery::Recovery* const recovery = shared_.options.recovery;
  if (recovery == nullptr) return take();
  if (!job_.expired()) return;
  const auto job = std::make_shared<char>();
  job_ = job;
  static_cast<void>(
      recovery->offload([&shared = shared_, stateid = recall_.stateid, take, life, job] {
        // It may have been given back meanwhile.
        if (shared.files.is_delegated(stateid)) shared.revoke(*life, take);
      }));
} catch (const std::bad_alloc&) {
}

void HolderQuestion::ask(Done done) {
  if (askers_.size() >= kAskers) return done(std::nullopt);
  askers_.push_back(std::move(done));
}

void HolderQuestion::fill(v4::nfs_cb_argop4& operation) const {
  operation.argop = v4::OP_CB_GETATTR;
  v4::CB_GETATTR4args& args = operation.opcbgetattr();
  args.fh = handle_of(shared_, delegation_.file);
  args.attr_request = {1u << v4::FATTR4_CHANGE | 1u << v4::FATTR4_SIZE};
}

PendingCallback::Next HolderQuestion::answered(const CallbackOutcome& outcome, TimePoint) {
  if (outcome.operation == v4::NFS4ERR_DELAY) return Next::Later;
  tell(outcome.attributes);
  return Next::Ended;
}

bool HolderQuestion::is_over(TimePoint now) {
  if (now < until_) return false;
  tell(std::nullopt);
  return true;
}

void HolderQuestion::tell(std::optional<HeldAttributes> held) {
  for (Done& done : std::exchange(askers_, {})) done(held);
}

}  // namespace stag::nfs::nfs4
