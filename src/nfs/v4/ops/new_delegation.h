// A delegation as it is made: its record, and the lease that keeps local programs waiting.
#pragma once

#include "nfs/v4/compound/compound.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

// As Files::delegate().
Task<state::StateidResult> delegate(Compound& compound, const ExportObject& file,
                                    state::DelegationType type, bool reclaim);

// Local programs that want the file wait for it from now on. False: one has it already, or nobody
// could tell. Nothing else is told of the delegation yet.
Task<bool> keep_from_programs(Compound& compound, const ExportObject& file,
                              state::DelegationType type, const state::Stateid& delegation);

// A delegation that no client knows of yet; given back unless it is told.
class Untold {
 public:
  Untold(Compound& compound, const ExportObject& file, const state::Stateid& stateid)
      : compound_(compound), file_(file.key()), stateid_(stateid) {}
  Untold(const Untold&) = delete;
  ~Untold() {
    if (told_) return;
    compound_.shared().files.return_delegation(file_, stateid_, *compound_.life());
  }
  void told() { told_ = true; }

 private:
  Compound& compound_;
  const state::FileKey file_;
  const state::Stateid stateid_;
  bool told_ = false;
};

}  // namespace stag::nfs::nfs4
