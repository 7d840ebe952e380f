// EXCHANGE_ID (RFC 8881 18.35).
#include "nfs/v4/compound/limit_notes.h"
#include "nfs/v4/compound/state_status.h"
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/state_protection.h"

namespace stag::nfs::nfs4 {

namespace {

Rope rope_of(std::uint64_t id) {
  std::array<std::byte, 8> bytes;
  store_be(bytes.data(), id);
  return Rope::copy_of(bytes);
}

// 2.10.4: servers with the same key understand each other's file handles.
std::uint64_t scope_of(const Compound& compound) {
  return compound.shared().server.handles.file_system_id("/");
}

// 2.5: what tells this server from every other, on whatever address and after every restart. Those
// of one scope share no state of clients, so no client may take two of them for one (2.10.5).
std::uint64_t major_id_of(const Compound& compound) {
  const recovery::Recovery* const records = compound.shared().options.recovery;
  return records != nullptr ? records->server() : scope_of(compound);
}

constexpr std::uint32_t kKnownFlags =
    v4::EXCHGID4_FLAG_SUPP_MOVED_REFER | v4::EXCHGID4_FLAG_SUPP_MOVED_MIGR |
    v4::EXCHGID4_FLAG_SUPP_FENCE_OPS | v4::EXCHGID4_FLAG_BIND_PRINC_STATEID |
    v4::EXCHGID4_FLAG_USE_NON_PNFS | v4::EXCHGID4_FLAG_USE_PNFS_MDS |
    v4::EXCHGID4_FLAG_USE_PNFS_DS | v4::EXCHGID4_FLAG_UPD_CONFIRMED_REC_A;

// 18.35.3: an SSV is refused for its algorithms, of which this server has none.
v4::nfsstat4 refuse_ssv(const v4::ssv_sp_parms4& parameters) {
  const bool nothing = parameters.ssp_hash_algs.empty() || parameters.ssp_encr_algs.empty() ||
                       parameters.ssp_window == 0;
  return nothing ? v4::NFS4ERR_INVAL : v4::NFS4ERR_ENCR_ALG_UNSUPP;
}

// 18.35.3: a machine credential is one of RPCSEC_GSS, with integrity at least.
v4::nfsstat4 check_arguments(const v4::EXCHANGE_ID4args& args, bool integrity) {
  if ((args.eia_flags & ~kKnownFlags) != 0 || args.eia_client_impl_id.size() > 1)
    return v4::NFS4ERR_INVAL;
  if (args.eia_state_protect.spa_how == v4::SP4_SSV)
    return refuse_ssv(args.eia_state_protect.spa_ssv_parms());
  const bool machine = args.eia_state_protect.spa_how == v4::SP4_MACH_CRED;
  return machine && !integrity ? v4::NFS4ERR_INVAL : v4::NFS4_OK;
}

}  // namespace

v4::EXCHANGE_ID4res exchange_id(Compound& compound, v4::EXCHANGE_ID4args& args) {
  const bool integrity = compound.has_integrity();
  if (const v4::nfsstat4 bad = check_arguments(args, integrity); bad != v4::NFS4_OK)
    return {bad, {}};
  compound.shared().expire(compound.now());
  const std::string principal = compound.principal();
  const std::string& address = compound.admission().call().origin().peer.host;
  const Buffer owner = args.eia_clientowner.co_ownerid.flatten();
  const state::ExchangeIdArgs asked{owner.bytes(),
                                    args.eia_clientowner.co_verifier,
                                    bytes_of(principal),
                                    address,
                                    (args.eia_flags & v4::EXCHGID4_FLAG_UPD_CONFIRMED_REC_A) != 0,
                                    compound.minor(),
                                    integrity,
                                    protection_of(args.eia_state_protect)};
  const state::ExchangeIdResult found =
      compound.shared().clients.exchange_id(asked, compound.now());
  compound.shared().release(found.ended);
  note_evicted(compound, found.evicted);
  if (found.status != state::Status::Ok) return {to_nfsstat4(found.status), {}};
  v4::EXCHANGE_ID4res results;
  v4::EXCHANGE_ID4resok& ok = results.eir_resok4();
  ok.eir_clientid = found.clientid;
  ok.eir_sequenceid = found.sequenceid;
  ok.eir_flags =
      v4::EXCHGID4_FLAG_USE_NON_PNFS | (found.confirmed ? v4::EXCHGID4_FLAG_CONFIRMED_R : 0u);
  if (found.protection.machine_credential) {
    ok.eir_state_protect.spr_how = v4::SP4_MACH_CRED;
    ok.eir_state_protect.spr_mach_ops() = ops_of(found.protection);
  }
  ok.eir_server_owner.so_major_id = rope_of(major_id_of(compound));
  ok.eir_server_scope = rope_of(scope_of(compound));
  ok.eir_server_impl_id.push_back({"", "stag", {}});
  return results;
}

}  // namespace stag::nfs::nfs4
