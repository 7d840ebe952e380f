#include "nfs/v4/ops/offloaded_copy.h"

#include "nfs/v4/compound/compound.h"

namespace stag::nfs::nfs4 {

OffloadedCopy offloaded_copy(const Compound& compound, const FileCopy& copy, const v4::stateid4& to,
                             std::uint64_t verifier, const state::FileChange& change) {
  const Admission& admission = compound.admission();
  FileCopy kept = copy;
  kept.keep(copy.from(), copy.to());
  return {std::move(kept),
          admission.call().origin(),
          admission.call().caller(),
          compound.life(),
          compound.slot()->slot,
          {},
          to,
          verifier,
          change.another(),
          {}};
}

}  // namespace stag::nfs::nfs4
