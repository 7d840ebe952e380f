// What a server says of state protection that a client with AUTH_SYS asks for (RFC 8881 18.35,
// 18.47).
#include "conform/nfs4/cases.h"

namespace stag::conform::nfs4 {
namespace {

using namespace nfs::v4;  // NOLINT: tables are made of its names

// Object identifiers: SHA-256, AES-256 in CBC mode, and one that names no algorithm.
constexpr std::string_view kSha256("\x60\x86\x48\x01\x65\x03\x04\x02\x01", 9);
constexpr std::string_view kAes256("\x60\x86\x48\x01\x65\x03\x04\x01\x2a", 9);
constexpr std::string_view kNoAlgorithm("\x2a\x03\x04", 3);

state_protect4_a secret_verifier(std::string_view hash, std::string_view encryption) {
  state_protect4_a asked;
  asked.spa_how = SP4_SSV;
  ssv_sp_parms4& parameters = asked.spa_ssv_parms();
  parameters.ssp_hash_algs.push_back(Rope::copy_of(bytes_of(hash)));
  parameters.ssp_encr_algs.push_back(Rope::copy_of(bytes_of(encryption)));
  parameters.ssp_window = 1;
  parameters.ssp_num_gss_handles = 1;
  return asked;
}

state_protect4_a machine_credential() {
  state_protect4_a asked;
  asked.spa_how = SP4_MACH_CRED;
  asked.spa_mach_ops() = {};
  return asked;
}

Task<Verdict> refuses_protection(Scene& scene, state_protect4_a asked, Statuses allowed) {
  Client client(scene.client.channel(), scene.other_client("protected"));
  EXCHANGE_ID4args args = client.owner_args();
  args.eia_state_protect = std::move(asked);
  Operations operations;
  operations.push_back(op(OP_EXCHANGE_ID, &Op::opexchange_id, std::move(args)));
  const Reply reply = co_await client.bare(std::move(operations));
  co_return expect(reply, allowed, "state protection");
}

Script refused_protection(std::string note, state_protect4_a protection, Statuses allowed) {
  Script script = asked(
      OP_EXCHANGE_ID, allowed.front(), std::move(note), kSessions,
      [protection, allowed](Scene& scene) {
        return refuses_protection(scene, protection, allowed);
      },
      "8881 18.35.3");
  script.expect = std::move(allowed);
  return script;
}

}  // namespace

// A server that has no SSV refuses it by either word.
Scripts protection_cases() {
  return {
      refused_protection("an SSV by a hash algorithm that nobody knows",
                         secret_verifier(kNoAlgorithm, kAes256),
                         {NFS4ERR_HASH_ALG_UNSUPP, NFS4ERR_ENCR_ALG_UNSUPP}),
      refused_protection("an SSV by an encryption algorithm that nobody knows",
                         secret_verifier(kSha256, kNoAlgorithm),
                         {NFS4ERR_ENCR_ALG_UNSUPP, NFS4ERR_HASH_ALG_UNSUPP}),
      refused_protection("a machine credential without RPCSEC_GSS and integrity",
                         machine_credential(), {NFS4ERR_INVAL}),
      {.note = "of a client ID without an SSV",
       .minors = kSessions,
       .steps = {plain(OP_SET_SSV, &Op::opset_ssv, {})},
       .expect = {NFS4ERR_INVAL},
       .section = "8881 18.47.3"},
  };
}

}  // namespace stag::conform::nfs4
