// What a listing tells of the exports that are mounted in its folder (RFC 8881 7.5). Their stores
// are not the folder's: one that hangs keeps nobody from the names beside it (decision 0018).
#pragma once

#include "nfs/v4/compound/compound.h"

namespace stag::nfs::nfs4 {

// For one READDIR, within which it is used.
class MountedExports {
 public:
  MountedExports(const Compound& compound, AttributeSet asked);

  // Whether what is asked for is more than the way to an export tells.
  bool asks_stores() const;
  // Of the node, which the client has entered. NFS4ERR_DELAY: its store has not
  // answered within a second, which is for all of them together.
  Task<Compound::FoundAttributes> attributes_of(const PseudoFs::Node& node,
                                                const Object& entered) const;

 private:
  Duration patience() const;

  const Compound& compound_;
  const AttributeSet asked_;
  const TimePoint until_;
};

}  // namespace stag::nfs::nfs4
