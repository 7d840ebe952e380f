#include "nfs/server/mount/mount.h"

#include "nfs/server/mount/mount_path.h"

namespace stag::nfs::mount {

namespace {

// RFC 1813 5.2.1, ERRORS: fewer than the store knows.
mount3::mountstat3 to_mountstat3(vfs::Status status) {
  switch (status) {
    case vfs::Status::NoEntry:
    case vfs::Status::Stale:
    case vfs::Status::BadHandle:
      return mount3::MNT3ERR_NOENT;
    case vfs::Status::Access:
    case vfs::Status::Perm:
      return mount3::MNT3ERR_ACCES;
    case vfs::Status::NotDirectory:
      return mount3::MNT3ERR_NOTDIR;
    case vfs::Status::NameTooLong:
      return mount3::MNT3ERR_NAMETOOLONG;
    default:
      return mount3::MNT3ERR_IO;
  }
}

mount3::mountres3 failed(mount3::mountstat3 status) {
  mount3::mountres3 res;
  res.fhs_status = status;
  return res;
}

// Enough for every path of a list; what DUMP and EXPORT send stays below kMaxMountList.
constexpr std::size_t kListBudget = 1 << 19;

}  // namespace

Task<mount3::mountres3> mnt(const Served& served, MountList& mounts, const rpc::CallContext& call,
                            mount3::dirpath path) {
  const auto normal = normal_path(path);
  const auto exports = served.exports.current();
  const auto match = normal ? exports->match(*normal) : std::nullopt;
  // The same answer for what is not exported and what is not there, as for any stranger.
  if (!match) co_return failed(normal ? mount3::MNT3ERR_NOENT : mount3::MNT3ERR_ACCES);
  const auto root = admit(*match->found, match->found->file_system().root(), call);
  if (!root) co_return failed(mount3::MNT3ERR_ACCES);
  const auto directory = co_await directory_at(*root, match->rest);
  if (!directory) co_return failed(to_mountstat3(directory.error()));

  mount3::mountres3 res;
  res.fhs_status = mount3::MNT3_OK;
  const FileHandles::Sealed handle = served.handles.seal(match->found->id, *directory);
  STAG_CHECK(res.mountinfo().fhandle.assign(handle.bytes()));
  res.mountinfo().auth_flavors = {static_cast<std::int32_t>(oncrpc::AuthFlavor::AUTH_SYS)};
  mounts.add(host_of(call), *normal);
  co_return res;
}

std::string_view host_of(const rpc::CallContext& call) {
  return std::string_view(call.origin().peer.host).substr(0, mount3::MNTNAMLEN);
}

mount3::mountlist dump(const MountList& mounts) {
  mount3::mountlist list;
  std::size_t bytes = 0;
  for (MountList::Entry& entry : mounts.all()) {
    bytes += entry.host.size() + entry.path.size() + 20;
    if (bytes > kListBudget) break;
    list.push_back({std::move(entry.host), std::move(entry.path)});
  }
  return list;
}

mount3::exports exports(const Served& served) {
  mount3::exports list;
  std::size_t bytes = 0;
  const auto now = served.exports.current();
  for (const Export& entry : now->all()) {
    // No groups: open to everybody.
    mount3::exportnode node{entry.path(), {}};
    bytes += node.ex_dir.size() + 20;
    for (const ClientRule& rule : entry.spec.clients) {
      // A host name with several addresses is one client.
      if (!node.ex_groups.empty() && node.ex_groups.back().gr_name == rule.match) continue;
      bytes += rule.match.size() + 12;
      node.ex_groups.push_back({rule.match});
    }
    if (bytes > kListBudget) break;
    list.push_back(std::move(node));
  }
  return list;
}

}  // namespace stag::nfs::mount
