#include "nfs/v4/ops/state_protection.h"

namespace stag::nfs::nfs4 {
namespace {

constexpr std::uint64_t set_of(std::initializer_list<v4::nfs_opnum4> operations) {
  std::uint64_t set = 0;
  for (const v4::nfs_opnum4 each : operations) set |= std::uint64_t{1} << each;
  return set;
}

// What Linux's client counts on, and no more: it refuses to work with a server that enforces less,
// or anything else.
constexpr std::uint64_t kEnforced =
    set_of({v4::OP_BIND_CONN_TO_SESSION, v4::OP_EXCHANGE_ID, v4::OP_CREATE_SESSION,
            v4::OP_DESTROY_SESSION, v4::OP_DESTROY_CLIENTID});
// To be enforced where the client wants it; there is nothing to purge.
constexpr std::uint64_t kEnforcedIfAsked = set_of({v4::OP_DELEGPURGE});
// What gives state back, or looks after it.
constexpr std::uint64_t kAllowed =
    set_of({v4::OP_CLOSE, v4::OP_OPEN_DOWNGRADE, v4::OP_LOCKU, v4::OP_DELEGRETURN,
            v4::OP_TEST_STATEID, v4::OP_FREE_STATEID});

std::uint64_t from_bitmap(const v4::bitmap4& bitmap) {
  std::uint64_t set = bitmap.empty() ? 0 : bitmap[0];
  if (bitmap.size() > 1) set |= std::uint64_t{bitmap[1]} << 32;
  return set;
}

v4::bitmap4 to_bitmap4(std::uint64_t set) {
  return {static_cast<std::uint32_t>(set), static_cast<std::uint32_t>(set >> 32)};
}

}  // namespace

state::StateProtection protection_of(const v4::state_protect4_a& asked) {
  if (asked.spa_how != v4::SP4_MACH_CRED) return {};
  const v4::state_protect_ops4& ops = asked.spa_mach_ops();
  return {true, kEnforced | (from_bitmap(ops.spo_must_enforce) & kEnforcedIfAsked),
          from_bitmap(ops.spo_must_allow) & kAllowed};
}

v4::state_protect_ops4 ops_of(const state::StateProtection& protection) {
  v4::state_protect_ops4 ops;
  ops.spo_must_enforce = to_bitmap4(protection.must_enforce);
  ops.spo_must_allow = to_bitmap4(protection.must_allow);
  return ops;
}

}  // namespace stag::nfs::nfs4
