// Stateids between the protocol and the state core (RFC 8881 8.2), and the checks of operations
// that have one.
#pragma once

#include <optional>
#include <string>

#include "nfs/v4/compound/compound.h"

namespace stag::nfs::nfs4 {

state::Stateid to_stateid(const v4::stateid4& stateid);
v4::stateid4 to_stateid4(const state::Stateid& stateid);

// What an operation does is a change until this ends; or why it may not do that.
using Permitted = Result<state::FileChange, v4::nfsstat4>;

// Whether an operation with this stateid may be done. NFS4ERR_DELAY: a holder is in the way, which
// makes way when check_stateid_in_time() is called.
Permitted check_stateid(Compound& compound, const ExportObject& object, const v4::stateid4& stateid,
                        state::Touch touch);
// The same of READ and READ_PLUS, which also those send who were told a copy stateid of the file.
Permitted check_stateid_to_read(Compound& compound, const ExportObject& object,
                                const v4::stateid4& stateid);
inline bool is_delayed(const Permitted& permitted) {
  return !permitted && permitted.error() == v4::NFS4ERR_DELAY;
}
// For settled(): what was asked for with a Permit.
struct Asked {
  state::Permit verdict;
};

// How often an operation asks again for what others who lapsed had.
inline constexpr int kTries = 16;

// The status of a verdict: NFS4_OK, or why not. Asks `ask` again where a client that lapsed was in
// the way, until nothing is.
template <class Ask>
auto settled(Compound& compound, Ask ask) {
  auto result = ask();
  for (int i = 0; i < kTries && result.verdict.kind == state::Verdict::Kind::Lapsed; ++i) {
    compound.shared().end_lapsed(result.verdict.who, EndedFor::Conflict);
    result = ask();
  }
  return result;
}
// Asks `ask` again where a limit was reached, as long as clients that lapsed make room.
template <class Ask>
auto with_room(Compound& compound, state::Shortage of, Ask ask) {
  SharedState& shared = compound.shared();
  auto result = ask();
  for (int i = 0; i < kTries && shared.make_room(result.limit, of, *compound.life()); ++i)
    result = ask();
  return result;
}
v4::nfsstat4 status_of(const state::Verdict& verdict);

// How long an operation waits for delegations that are being recalled.
inline constexpr Duration kRecallPatience = std::chrono::seconds(1);
// False: not in time, or too many wait.
using BeginWait = UniqueFunction<state::Waiting(UniqueFunction<void()> done)>;
Task<bool> told_in_time(Compound& compound, TimePoint until, BeginWait begin);
// The same, until a delegation of the file is gone, or its changes go on.
Task<bool> delegation_goes(Compound& compound, state::FileKey file, TimePoint until);

// The same as settled(), where delegations may be in the way: they have until then to be given
// back.
template <class Ask>
auto settled_until(TimePoint until, Compound& compound, state::FileKey file, Ask ask)
    -> Task<decltype(ask())> {
  auto result = settled(compound, ask);
  while (result.verdict.kind == state::Verdict::Kind::Recall) {
    const bool gone = co_await delegation_goes(compound, file, until);
    if (!gone) break;
    result = settled(compound, ask);
  }
  co_return result;
}

// The same: they get a second.
template <class Ask>
auto settled_in_time(Compound& compound, state::FileKey file, Ask ask) {
  return settled_until(compound.now() + kRecallPatience, compound, file, std::move(ask));
}

// Another holder is in the way of what the caller intends. If the store would let the caller do it,
// that holder makes way, in time where it has delegations; `ask` tells whether it has.
Task<Permitted> permitted_in_time(Compound& compound, ExportObject object, Intent intent,
                                  UniqueFunction<state::Permit()> ask);
// check_stateid() has said NFS4ERR_DELAY: the same of its operation.
Task<Permitted> check_stateid_in_time(Compound& compound, ExportObject object, v4::stateid4 stateid,
                                      state::Touch touch);
// Both of these, for operations that are rare.
Task<Permitted> check_stateid_patiently(Compound& compound, ExportObject object,
                                        v4::stateid4 stateid, state::Touch touch);
// Whether an operation on an object without a stateid may be done. Waits for delegations of other
// clients.
Task<Permitted> pass_gate(Compound& compound, ExportObject object, Intent intent);
// The same for what has this name, if anything has, and loses it; NFS4_OK: it may.
Task<v4::nfsstat4> pass_gate_to_unlink(Compound& compound, ExportObject directory,
                                       std::string name);

}  // namespace stag::nfs::nfs4
