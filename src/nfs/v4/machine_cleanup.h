// What the machine credential of a client may do in one COMPOUND; included by interpreter.cc, in
// whose loop it is asked for every operation.
#pragma once

#include <cstdint>

#include "nfs/v4/compound/machine_credential.h"
#include "nfs/v4/operation_list.h"

namespace stag::nfs::nfs4 {

// RFC 8881 18.35.3, spo_must_allow: a COMPOUND by which the client's machine gives state back.
// Linux's client asks for attributes of that file on the way.
class MachineCleanup {
 public:
  MachineCleanup(const Compound& compound, const OperationList& list) {
    const std::uint64_t may = allowed_to_machine(compound);
    if (may == 0) return;
    std::uint64_t sent = 0;
    for (const OperationList::Entry& entry : list.entries())
      if (entry.number < 64) sent |= bit(entry.number);
    if ((sent & may) == 0) return;
    allowed_ = may;
    const bool looks_up = (sent & (bit(v4::OP_LOOKUP) | bit(v4::OP_LOOKUPP))) != 0;
    if ((sent & may & gives_back()) != 0 && !looks_up) allowed_ |= bit(v4::OP_GETATTR);
  }
  bool any() const { return allowed_ != 0; }
  bool allows(std::uint32_t number) const { return is_in(allowed_, number); }

 private:
  static constexpr std::uint64_t bit(std::uint32_t number) { return std::uint64_t{1} << number; }
  static constexpr std::uint64_t gives_back() {
    return bit(v4::OP_CLOSE) | bit(v4::OP_OPEN_DOWNGRADE) | bit(v4::OP_LOCKU) |
           bit(v4::OP_DELEGRETURN);
  }
  static bool is_in(std::uint64_t set, std::uint32_t number) {
    return number < 64 && (set & bit(number)) != 0;
  }
  std::uint64_t allowed_ = 0;
};

}  // namespace stag::nfs::nfs4
