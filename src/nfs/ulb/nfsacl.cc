#include "nfs/ulb/nfsacl.h"

#include <algorithm>
#include <tuple>

namespace stag::nfs::ulb {
namespace {

using namespace nfsacl;
using Entries = std::vector<aclent>;

constexpr std::uint32_t kPermissions = 7;

constexpr std::array kNfsacl{
    rpc::bind<ACLPROC2_GETACL>().retry_short_replies(),
    rpc::bind<ACLPROC3_GETACL>().retry_short_replies(),
};

Entries::iterator entry_of(Entries& list, std::uint32_t type) {
  return std::find_if(list.begin(), list.end(),
                      [type](const aclent& entry) { return entry.type == type; });
}

bool is_named(const aclent& entry) {
  return entry.type == ACL_USER || entry.type == ACL_GROUP;
}

}  // namespace

rpc::Binding nfsacl() {
  return rpc::Binding(kNfsacl);
}

Entries sent_acl(Entries list, Owners owners, std::uint32_t flags) {
  const auto group = entry_of(list, ACL_GROUP_OBJ);
  // Solaris wants the mask in its place, before the others.
  if (list.size() == 3 && group != list.end())
    list.insert(entry_of(list, ACL_OTHER_OBJ), aclent{ACL_CLASS_OBJ, 0, group->perm});
  for (aclent& entry : list) {
    if (entry.type == ACL_USER_OBJ) entry.id = owners.uid;
    if (entry.type == ACL_GROUP_OBJ) entry.id = owners.gid;
    entry.type |= flags;
  }
  return list;
}

Entries received_acl(Entries list) {
  for (aclent& entry : list) {
    entry.type &= ~NFS_ACL_DEFAULT;
    if (!is_named(entry)) entry.id = 0;
    // Solaris sets more bits in a mask now and then.
    if (entry.type == ACL_CLASS_OBJ) entry.perm &= kPermissions;
  }
  std::stable_sort(list.begin(), list.end(), [](const aclent& a, const aclent& b) {
    return std::tie(a.type, a.id) < std::tie(b.type, b.id);
  });
  const auto group = entry_of(list, ACL_GROUP_OBJ);
  const auto mask = entry_of(list, ACL_CLASS_OBJ);
  const bool both = group != list.end() && mask != list.end();
  if (list.size() == 4 && both && group->perm == mask->perm) list.erase(mask);
  return list;
}

}  // namespace stag::nfs::ulb
