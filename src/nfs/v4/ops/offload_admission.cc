// What the exports say of a copy that goes on: they may be others than those of its COPY.
#include "nfs/v4/compound/shared_state.h"
#include "nfs/v4/compound/status.h"
#include "nfs/v4/ops/offload_job.h"

namespace stag::nfs::nfs4 {
namespace {

// Where a service is asked who the client is: how soon it is looked again, and for how long.
constexpr Duration kLook = std::chrono::milliseconds(100);
constexpr Duration kPatience = std::chrono::seconds(10);

// As the filehandle of a Call (Compound::resolve()).
Result<ExportObject, v4::nfsstat4> admitted_to(const Exports& exports, const ExportObject& object,
                                               const OffloadedCopy& copy) {
  if (!exports.serves(object.key())) return Failure{v4::NFS4ERR_STALE};
  auto admitted = nfs::admit(*exports.find(object.key().via), object.handle, copy.origin,
                             copy.caller, Admission::Security::Checked, nullptr);
  if (!admitted) return Failure{to_nfsstat4(admitted.error())};
  return *std::move(admitted);
}

bool is_same_user(const vfs::Credentials& one, const vfs::Credentials& other) {
  return one.uid == other.uid && one.gid == other.gid && one.groups == other.groups;
}

}  // namespace

// With what READ and WRITE of its client would be refused; NFS4_OK: with nothing, and its next
// piece is done as they would be. Earlier exports are let go.
v4::nfsstat4 Offloads::admit(Job& job) const {
  FileCopy& copy = job.work.copy;
  const auto exports = shared_.server.exports.current();
  ExportObject from;
  if (!job.work.source) {
    auto admitted = admitted_to(*exports, copy.from(), job.work);
    if (!admitted) return admitted.error();
    from = *std::move(admitted);
  }
  auto to = admitted_to(*exports, copy.to(), job.work);
  if (!to) return to.error();
  if (to->read_only()) return v4::NFS4ERR_ROFS;
  // The source is read as who the user was here (decision 0072).
  if (job.work.source && !is_same_user(to->credentials, job.work.source->args.user))
    return v4::NFS4ERR_OFFLOAD_DENIED;
  copy.keep(std::move(from), *std::move(to));
  job.go_on_at(callbacks_.home());
  return v4::NFS4_OK;
}

Task<v4::nfsstat4> Offloads::admit_patiently(Job& job) const {
  Loop& home = callbacks_.home();
  const TimePoint until = home.now() + kPatience;
  v4::nfsstat4 status = admit(job);
  while (status == v4::NFS4ERR_DELAY && !given_up(job) && home.now() < until) {
    co_await sleep_for(home, kLook);
    status = admit(job);
  }
  co_return status;
}

}  // namespace stag::nfs::nfs4
