// The operations that version 4.0 alone has, or does in another way: owners number them. What a
// folder of the pseudo file system answers is said in their turn, for it counts.
#include <array>

#include "nfs/v4/operation.h"
#include "nfs/v4/ops/operations.h"

namespace stag::nfs::nfs4 {

namespace {

// Bytes of the longest results, as in op_table.cc.
constexpr std::uint32_t kV40Status = 4;
constexpr std::uint32_t kV40Stateid = kV40Status + 16;
// As in op_table.cc.
constexpr std::uint32_t kV40Delegation = 4 + 16 + 4 + 12 + 16;
constexpr std::uint32_t kV40Open =
    kV40Stateid + 20 + 4 + 4 + 4 * AttributeSet::kWords + kV40Delegation;
constexpr std::uint32_t kV40Denied = kV40Status + 20 + 8 + 4 + v4::NFS4_OPAQUE_LIMIT;

constexpr std::array kV40Operations{
    operation<&v4::CLOSE4res::status, close_in_turn>(
        {v4::OP_CLOSE, "CLOSE", Needs::Current, {}, {}, kV40Stateid}),
    operation<&v4::LOCK4res::status, lock_in_turn>(
        {v4::OP_LOCK, "LOCK", Needs::Current, {}, {}, kV40Denied}),
    operation<&v4::LOCKU4res::status, locku_in_turn>(
        {v4::OP_LOCKU, "LOCKU", Needs::Current, {}, {}, kV40Stateid}),
    operation<&v4::OPEN4res::status, open_in_turn>(
        {v4::OP_OPEN, "OPEN", Needs::Current, {}, {}, kV40Open}),
    operation<&v4::OPEN_CONFIRM4res::status, open_confirm>(
        {v4::OP_OPEN_CONFIRM, "OPEN_CONFIRM", Needs::Current, {}, {}, kV40Stateid}),
    operation<&v4::OPEN_DOWNGRADE4res::status, open_downgrade_in_turn>(
        {v4::OP_OPEN_DOWNGRADE, "OPEN_DOWNGRADE", Needs::Current, {}, {}, kV40Stateid}),
    operation<&v4::RENEW4res::status, renew>({v4::OP_RENEW, "RENEW"}),
    operation<&v4::SETCLIENTID4res::status, setclientid>(
        {v4::OP_SETCLIENTID, "SETCLIENTID", {}, {}, {}, kV40Status + 16}),
    operation<&v4::SETCLIENTID_CONFIRM4res::status, setclientid_confirm>(
        {v4::OP_SETCLIENTID_CONFIRM, "SETCLIENTID_CONFIRM", {}, {}, {}, kV40Status}),
    operation<&v4::RELEASE_LOCKOWNER4res::status, release_lockowner>(
        {v4::OP_RELEASE_LOCKOWNER, "RELEASE_LOCKOWNER", {}, {}, {}, kV40Status}),
};

}  // namespace

const Operation* find_v40_operation(std::uint32_t number) {
  for (const Operation& row : kV40Operations)
    if (row.number == number) return &row;
  return nullptr;
}

}  // namespace stag::nfs::nfs4
