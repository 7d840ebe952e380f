// Version 4.0: which client asks (RFC 7530 9.1.4.4, 9.5).
#include <algorithm>

#include "nfs/v4/compound/compound.h"
#include "nfs/v4/compound/state_status.h"

namespace stag::nfs::nfs4 {

namespace {

bool all_bytes_are(const v4::stateid4& stateid, std::byte value) {
  return std::ranges::all_of(stateid.other, [value](std::byte byte) { return byte == value; });
}

}  // namespace

v4::nfsstat4 Compound::identify(v4::clientid4 clientid) {
  if (minor_ != 0) return v4::NFS4_OK;
  state::RenewResult found = shared_.clients.renew_lease(clientid, now());
  life_ = std::move(found.life);
  return to_nfsstat4(found.status);
}

v4::nfsstat4 Compound::identify(const v4::stateid4& stateid) {
  if (minor_ != 0) return v4::NFS4_OK;
  const bool zeros = all_bytes_are(stateid, std::byte{0});
  if (zeros || all_bytes_are(stateid, std::byte{0xff})) {
    static const auto kNobody = std::make_shared<state::Life>(0);
    life_ = kNobody;
    const bool special = stateid.seqid == (zeros ? 0 : 0xffffffff);
    return special ? v4::NFS4_OK : v4::NFS4ERR_BAD_STATEID;
  }
  const state::StateHolder holder = shared_.files.holder_of({stateid.seqid, stateid.other});
  if (holder.status != state::Status::Ok) return to_nfsstat4(holder.status);
  // One of a later version, which has sessions.
  if (!holder.life->without_sessions) return v4::NFS4ERR_BAD_STATEID;
  return identify(holder.life->clientid);
}

}  // namespace stag::nfs::nfs4
