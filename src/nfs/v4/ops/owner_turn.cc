#include "nfs/v4/ops/owner_turn.h"

namespace stag::nfs::nfs4 {

bool on_pseudo_fs(const Compound& compound) {
  return std::holds_alternative<const PseudoFs::Node*>(compound.current());
}

}  // namespace stag::nfs::nfs4
