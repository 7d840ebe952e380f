#include "nfs/client/nfsacl/values.h"

#include "nfs/ulb/nfsacl.h"

namespace stag::nfs::client {
namespace {

using namespace nfsacl;

static_assert(kAclReplyMax == *ACLPROC3_GETACL::max_results_size);

// The ids of the owners are left out: servers know whose the object is.
std::vector<aclent> to_aclents(const std::vector<AclEntry>& list, std::uint32_t flags) {
  std::vector<aclent> entries;
  for (const AclEntry& entry : list) entries.push_back({entry.tag, entry.id, entry.permissions});
  return ulb::sent_acl(ulb::received_acl(std::move(entries)), {}, flags);
}

std::vector<AclEntry> from_aclents(const std::vector<aclent>& list) {
  std::vector<AclEntry> entries;
  for (const aclent& entry : ulb::received_acl(list))
    entries.push_back({entry.type, entry.id, entry.perm});
  return entries;
}

}  // namespace

secattr to_secattr(const Acls& acls, bool with_defaults) {
  secattr to;
  to.mask = NFS_ACL | NFS_ACLCNT;
  to.aclents = to_aclents(acls.access, 0);
  if (with_defaults) {
    to.mask |= NFS_DFACL | NFS_DFACLCNT;
    to.dfaclents = to_aclents(acls.defaults, NFS_ACL_DEFAULT);
  }
  to.aclcnt = static_cast<std::uint32_t>(to.aclents.size());
  to.dfaclcnt = static_cast<std::uint32_t>(to.dfaclents.size());
  return to;
}

Outcome<Acls> from_secattr(OperationContext context, const secattr& found) {
  constexpr std::uint32_t kBoth = NFS_ACL | NFS_DFACL;
  if ((found.mask & kBoth) != kBoth || found.aclcnt != found.aclents.size() ||
      found.dfaclcnt != found.dfaclents.size())
    return Failure{Error::of_protocol(context, "left out a part of it")};
  return Acls{from_aclents(found.aclents), from_aclents(found.dfaclents)};
}

}  // namespace stag::nfs::client
