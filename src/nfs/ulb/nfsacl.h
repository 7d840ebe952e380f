// The Upper-Layer Binding of NFSACL (RFC 8267 section 5.2), and the form of lists on the wire as
// far as XDR does not define it. No item of NFSACL is DDP-eligible: a large list makes a Long Call
// or a Long Reply.
//
// The size of a GETACL Reply is not known in advance: the caller chooses a bound
// (rpc::CallOptions::results_max, else that of the XDR definition), and if it proves too small the
// Call may be made again with a larger Reply chunk (RFC 8267 section 3.1). All other Replies have
// the bound of their XDR definition.
#pragma once

#include <vector>

#include "nfs/proto/nfsacl.h"
#include "rpc/binding.h"

namespace stag::nfs::ulb {

// Program 100227 versions 2 and 3.
rpc::Binding nfsacl();

// The owners of the object: the entries of owner and owning group carry their ids.
struct Owners {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};

// The wire form of a list: it has at least four entries, so that a list without a mask gets a mask
// with the permissions of the owning group. `list` is in canonical order, with ids of users and
// groups only; `flags` is 0 or NFS_ACL_DEFAULT.
std::vector<nfsacl::aclent> sent_acl(std::vector<nfsacl::aclent> list, Owners owners,
                                     std::uint32_t flags);

// The reverse: puts the entries in canonical order and removes the flag, the owners' ids and a mask
// without effect. Invalid lists stay invalid; the store refuses them.
std::vector<nfsacl::aclent> received_acl(std::vector<nfsacl::aclent> list);

}  // namespace stag::nfs::ulb
