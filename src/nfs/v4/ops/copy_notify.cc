// COPY_NOTIFY (RFC 7862 15.3): leave for another server to read the current file; and its READs.
//
// The server that reads by a copy stateid needs credentials that allow the READ, as ever: the
// stateid stands for the open alone, so one that was overheard is of little use (4.9.1.2). That is
// why COPY_NOTIFY is granted without RPCSEC_GSS, too.
#include "nfs/v4/compound/limit_notes.h"
#include "nfs/v4/compound/state_status.h"
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/stateids.h"
#include "rpcbind/universal_address.h"

namespace stag::nfs::nfs4 {

namespace {

// RFC 7862 15.3.3: the destination, and the user who has it copy.
std::uint64_t number_of(const Compound& compound, const v4::netloc4& destination) {
  xdr::Encoder encoder;
  encode(encoder, destination);
  encoder.u64(compound.principal_number());
  return siphash(process_sip_key(), std::move(encoder).finish().rope().flatten().bytes());
}

// The address that the client calls, which is the one that this server knows to be of use.
v4::netloc4 own_location(const Compound& compound) {
  const rpc::Origin& origin = compound.admission().call().origin();
  v4::netloc4 location;
  location.nl_type = v4::NL4_NETADDR;
  location.nl_addr() = {std::string(origin.netid), rpcbind::to_universal(origin.local)};
  return location;
}

}  // namespace

v4::COPY_NOTIFY4res copy_notify(Compound& compound, v4::COPY_NOTIFY4args& args) {
  const auto source = compound.meant(args.cna_src_stateid);
  if (!source) return {source.error(), {}};
  SharedState& shared = compound.shared();
  const state::CopyNoticeArgs wanted{compound.object().key(), to_stateid(*source),
                                     number_of(compound, args.cna_destination_server)};
  const state::StateidResult notice =
      shared.copy_notices.notify(wanted, compound.life(), compound.now());
  note_limit(compound, Reason::Nfs4CopyNoticesTooMany, notice.limit);
  if (notice.status != state::Status::Ok) return {to_nfsstat4(notice.status), {}};
  v4::COPY_NOTIFY4res results;
  v4::COPY_NOTIFY4resok& ok = results.resok4();
  ok.cnr_lease_time.seconds = shared.options.lease_seconds;
  ok.cnr_stateid = to_stateid4(notice.stateid);
  ok.cnr_source_server.push_back(own_location(compound));
  return results;
}

// RFC 7862 4.6.2: a destination reads by NFSv4.1 or later. Earlier ones know by their stateids
// alone who asks, and have been refused with NFS4ERR_STALE_STATEID.
Permitted check_stateid_to_read(Compound& compound, const ExportObject& object,
                                const v4::stateid4& stateid) {
  Permitted permitted = check_stateid(compound, object, stateid, state::Touch::Read);
  if (permitted || permitted.error() != v4::NFS4ERR_BAD_STATEID) return permitted;
  const bool admitted =
      compound.shared().copy_notices.admits(object.key(), to_stateid(stateid), compound.now());
  return admitted ? Permitted(state::FileChange()) : std::move(permitted);
}

}  // namespace stag::nfs::nfs4
