// What a client held before a restart and does not get again, because another holder has it by now:
// a program of this machine that was faster (decision 0043), or a client of a gateway that adopted
// this one. Clients seldom say so themselves: their next write fails.
//
// Thread: any.
#pragma once

#include "nfs/state/files.h"
#include "nfs/v4/compound/compound.h"

namespace stag::nfs::nfs4 {

// Does nothing where that is not how it ended. A note that finds no memory is lost.
void note_refused_reclaim(const Compound& compound, const state::LockResult& locked,
                          const state::Range& wanted) noexcept;
void note_refused_reclaim(const Compound& compound, const state::OpenResult& opened) noexcept;

}  // namespace stag::nfs::nfs4
