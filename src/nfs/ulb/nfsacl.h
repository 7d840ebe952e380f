// The Upper-Layer Binding of NFSACL (RFC 8267 5.2), and what both ends of it agree on about lists
// of entries that XDR does not say. Nothing of NFSACL is DDP-eligible: a large list makes a Long
// Call or a Long Reply.
//
// How large a GETACL Reply can be nobody knows before; its caller chooses the most it will take
// (rpc::CallOptions::results_max, else what the XDR definition bounds), and where that proves too
// small the Call may be made again with more room (RFC 8267 3.1). All other Replies have the size
// that their XDR definition gives them.
#pragma once

#include <vector>

#include "nfs/proto/nfsacl.h"
#include "rpc/binding.h"

namespace stag::nfs::ulb {

// Program 100227 versions 2 and 3.
rpc::Binding nfsacl();

// Whose object it is: the entries of owner and owning group carry their ids.
struct Owners {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};

// A list as it is sent: no list on the wire has fewer than four entries, so one without a mask gets
// one that allows what the owning group may. `list` is in canonical order, with ids of users and
// groups only; `flags` is 0 or NFS_ACL_DEFAULT.
std::vector<nfsacl::aclent> sent_acl(std::vector<nfsacl::aclent> list, Owners owners,
                                     std::uint32_t flags);

// The same backwards: puts the entries in canonical order, takes the flag, the owners' ids and the
// mask that says nothing away. What does not make sense stays for others to refuse.
std::vector<nfsacl::aclent> received_acl(std::vector<nfsacl::aclent> list);

}  // namespace stag::nfs::ulb
