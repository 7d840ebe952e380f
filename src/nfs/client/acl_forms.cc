// The two forms of access control lists: that of POSIX, and that of version 4 (RFC 8881 section 6).
#include <limits>
#include <utility>
#include <vector>

#include "nfs/acl/acl_map.h"
#include "nfs/client/acl.h"
#include "vfs/acl.h"

namespace stag::nfs::client {
namespace {

std::optional<vfs::Acl> stored(const std::vector<AclEntry>& entries) {
  std::vector<vfs::AclEntry> all;
  for (const AclEntry& entry : entries) {
    if (entry.tag > std::numeric_limits<std::uint16_t>::max()) return std::nullopt;
    all.push_back({static_cast<vfs::AclEntry::Tag>(entry.tag), entry.id, entry.permissions});
  }
  return vfs::Acl::from(std::move(all));
}

std::vector<AclEntry> listed(const vfs::Acl& acl) {
  std::vector<AclEntry> all;
  for (const vfs::AclEntry& entry : acl.entries())
    all.push_back({static_cast<std::uint32_t>(entry.tag), entry.id, entry.permissions});
  return all;
}

}  // namespace

Acls acls_of_mode(std::uint32_t mode) {
  return {.access = listed(vfs::Acl::of_mode(mode)), .defaults = {}};
}

std::optional<Nfs4Acl> to_nfs4_acl(const Acls& acls, bool directory, std::uint32_t mode) {
  std::optional<vfs::Acl> access = stored(acls.access);
  const std::optional<vfs::Acl> defaults = stored(acls.defaults);
  if (!access || !defaults) return std::nullopt;
  if (access->empty()) access = vfs::Acl::of_mode(mode);
  Nfs4Acl list;
  for (auto& ace : nfs::nfs4::to_aces({*access, *defaults}, directory))
    list.push_back({ace.type, ace.flag, ace.access_mask, std::move(ace.who)});
  return list;
}

std::optional<Acls> to_posix_acls(const Nfs4Acl& acl, bool directory) {
  nfs::nfs4::Aces aces;
  for (const Nfs4Ace& ace : acl) aces.push_back({ace.type, ace.flags, ace.mask, ace.who});
  const auto lists = nfs::nfs4::from_aces(aces, directory);
  if (!lists) return std::nullopt;
  return Acls{.access = listed(lists->access.value_or(vfs::Acl())),
              .defaults = listed(lists->defaults.value_or(vfs::Acl()))};
}

bool beyond_mode(const Nfs4Acl& acl, bool directory) {
  const std::optional<Acls> acls = to_posix_acls(acl, directory);
  return !acls || acls->beyond_mode() || to_nfs4_acl(*acls, directory) != acl;
}

}  // namespace stag::nfs::client
