// Stateids between the protocol and the state core (RFC 8881 8.2), and the checks of operations
// that have one.
#pragma once

#include <optional>

#include "nfs/v4/compound/compound.h"

namespace stag::nfs::nfs4 {

state::Stateid to_stateid(const v4::stateid4& stateid);
v4::stateid4 to_stateid4(const state::Stateid& stateid);
state::FileKey key_of(const ExportObject& object);

// Why an operation with this stateid may not do that; nullopt: it may. The stateid becomes the
// current one.
std::optional<v4::nfsstat4> check_stateid(Compound& compound, const ExportObject& object,
                                          const v4::stateid4& stateid, state::Touch touch);

// The status of a verdict: NFS4_OK, or why not. Asks `ask` again where a client that lapsed was in
// the way, until nothing is.
template <class Ask>
auto settled(Compound& compound, Ask ask) {
  constexpr int kTries = 16;
  auto result = ask();
  for (int i = 0; i < kTries && result.verdict.kind == state::Verdict::Kind::Lapsed; ++i) {
    compound.shared().end_lapsed(result.verdict.who);
    result = ask();
  }
  return result;
}
v4::nfsstat4 status_of(const state::Verdict& verdict);

}  // namespace stag::nfs::nfs4
