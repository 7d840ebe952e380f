#include "nfs/server/mount/mount.h"

#include <algorithm>
#include <limits>

#include "base/reason.h"
#include "nfs/export/admission.h"
#include "nfs/proto/mount3.h"
#include "nfs/server/mount/mount_path.h"
#include "nfs/ulb/nfs3.h"

namespace stag::nfs::mount {

namespace {

// Bytes, enough for every path of a list; the Replies of DUMP and EXPORT stay below kMaxMountList.
constexpr std::size_t kListBudget = 1 << 19;

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

// The directory that a client mounts, and its export on the client's terms.
struct MountedDirectory {
  ExportObject root;
  vfs::Handle handle;
};

// The longest export that the path lies in, and the walk from its root to the rest of the path with
// the caller's own permissions: those of the anonymous user where the export does not take the
// caller's flavor.
Task<Result<MountedDirectory, mount3::mountstat3>> find_directory(const Admission& admission,
                                                                  std::string_view path) {
  const auto normal = normal_path(path);
  if (!normal) co_return Failure{mount3::MNT3ERR_ACCES};
  const auto match = admission.match(*normal);
  // The same status whether the path is not exported or does not exist: a stranger must not learn
  // which.
  if (!match) co_return Failure{mount3::MNT3ERR_NOENT};
  co_await match->found->settle(admission.call().origin());
  auto root = admission.admit(*match->found, match->found->file_system().root(),
                              Admission::Security::BesideNfs);
  if (!root)
    co_return Failure{root.error() == Refusal::Undecided ? mount3::MNT3ERR_IO
                                                         : mount3::MNT3ERR_ACCES};
  if (root->wrong_security) root->credentials = acting_as(*root->options, {});
  const auto directory = co_await directory_at(*root, match->rest);
  if (!directory) co_return Failure{to_mountstat3(directory.error())};
  co_return MountedDirectory{*root, *directory};
}

// The name under which the list of mounts has the caller.
std::string_view host_of(const rpc::CallContext& call) {
  return std::string_view(call.origin().peer.host).substr(0, mount3::MNTNAMLEN);
}

void note_mount(MountList& mounts, const rpc::CallContext& call, std::string_view path) {
  if (const auto normal = normal_path(path)) mounts.add(host_of(call), *normal);
}

// Those that the export takes. AUTH_NONE only when there is no other: Linux's client understands it
// as "any credential will do".
std::vector<std::int32_t> flavors_of(const ExportOptions& options) {
  std::vector<std::int32_t> flavors;
  for (const oncrpc::AuthFlavor flavor : options.flavors)
    if (flavor != oncrpc::AuthFlavor::AUTH_NONE || options.flavors.size() == 1)
      flavors.push_back(static_cast<std::int32_t>(flavor));
  return flavors;
}

Task<mount3::mountres3> mnt3(const ServerContext& server, MountList& mounts,
                             const rpc::CallContext& call, mount3::dirpath path) {
  mount3::mountres3 res;
  const Admission admission(server, call);
  const auto directory = co_await find_directory(admission, path);
  if (!directory) {
    res.fhs_status = directory.error();
    co_return res;
  }
  res.fhs_status = mount3::MNT3_OK;
  const FileHandles::Sealed handle = admission.handle_of(directory->root, directory->handle);
  STAG_CHECK(res.mountinfo().fhandle.assign(handle.bytes()));
  res.mountinfo().auth_flavors = flavors_of(*directory->root.options);
  note_mount(mounts, call, path);
  co_return res;
}

mount3::fhstatus refused(mount3::mountstat3 status) {
  mount3::fhstatus res;
  // RFC 1094 A.4.2: a UNIX error number; those that to_mountstat3() yields are.
  res.status = static_cast<std::uint32_t>(status);
  return res;
}

Task<mount3::fhstatus> mnt1(const ServerContext& server, MountList& mounts,
                            const rpc::CallContext& call, mount3::dirpath path) {
  const Admission admission(server, call);
  const auto directory = co_await find_directory(admission, path);
  if (!directory) co_return refused(directory.error());
  const auto handle = server.handles.seal2(directory->root.export_->id, directory->handle);
  if (!handle) {
    trace(Reason::NfsHandleTooLong, path);
    co_return refused(mount3::MNT3ERR_IO);
  }
  mount3::fhstatus res;
  res.directory() = *handle;
  note_mount(mounts, call, path);
  co_return res;
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

mount3::exports exports(const ServerContext& server) {
  mount3::exports list;
  std::size_t bytes = 0;
  const auto now = server.exports.current();
  for (const Export& entry : now->all()) {
    // No groups: open to all clients.
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

// Limits of the file system that the path lies in; zeros for a caller that it is not open to.
mount3::ppathcnf pathconf2(const ServerContext& server, const rpc::CallContext& call,
                           std::string_view path) {
  mount3::ppathcnf res;
  const Admission admission(server, call);
  const auto normal = normal_path(path);
  const auto match = normal ? admission.match(*normal) : std::nullopt;
  if (!match || !admission.admit(*match->found, match->found->file_system().root(),
                                 Admission::Security::BesideNfs))
    return res;
  const vfs::Limits limits = match->found->file_system().limits();
  constexpr std::uint32_t kMost = std::numeric_limits<std::int32_t>::max();
  res.pc_link_max = static_cast<std::int32_t>(std::min(limits.max_links, kMost));
  res.pc_name_max = static_cast<std::int32_t>(std::min(limits.max_name, kMost));
  res.pc_path_max = mount3::MNTPATHLEN;
  return res;
}

// Results that are there without waiting.
template <class T>
Task<T> at_once(T value) {
  co_return value;
}

// The procedures with the same arguments and results in all versions, which only number them
// differently.
template <class Dump, class Umnt, class UmntAll, class Export>
rpc::Program common(const ServerContext& server, MountList& mounts) {
  rpc::Program program(Dump::program, Dump::version, ulb::mount3());
  program.add<Dump>([&mounts](rpc::CallContext&, xdr::Void) { return at_once(dump(mounts)); });
  program.add<Umnt>([&mounts](rpc::CallContext& call, mount3::dirpath path) {
    if (const auto normal = normal_path(path)) mounts.remove(host_of(call), *normal);
    return at_once(xdr::Void{});
  });
  program.add<UmntAll>([&mounts](rpc::CallContext& call, xdr::Void) {
    mounts.remove_all(host_of(call));
    return at_once(xdr::Void{});
  });
  program.add<Export>([&server](rpc::CallContext&, xdr::Void) { return at_once(exports(server)); });
  program.absent_from(rpc::TransportKind::Rdma);
  return program;
}

template <class Mnt, class ExportAll>
void add_of_nfs2(rpc::Program& program, const ServerContext& server, MountList& mounts) {
  program.add<Mnt>([&server, &mounts](rpc::CallContext& call, mount3::dirpath path) {
    return mnt1(server, mounts, call, std::move(path));
  });
  program.add<ExportAll>(
      [&server](rpc::CallContext&, xdr::Void) { return at_once(exports(server)); });
}

}  // namespace

rpc::Program program1(const ServerContext& server, MountList& mounts) {
  using namespace mount3;
  rpc::Program program =
      common<MOUNTPROC1_DUMP, MOUNTPROC1_UMNT, MOUNTPROC1_UMNTALL, MOUNTPROC1_EXPORT>(server,
                                                                                      mounts);
  add_of_nfs2<MOUNTPROC1_MNT, MOUNTPROC1_EXPORTALL>(program, server, mounts);
  return program;
}

rpc::Program program2(const ServerContext& server, MountList& mounts) {
  using namespace mount3;
  rpc::Program program =
      common<MOUNTPROC2_DUMP, MOUNTPROC2_UMNT, MOUNTPROC2_UMNTALL, MOUNTPROC2_EXPORT>(server,
                                                                                      mounts);
  add_of_nfs2<MOUNTPROC2_MNT, MOUNTPROC2_EXPORTALL>(program, server, mounts);
  program.add<MOUNTPROC2_PATHCONF>([&server](rpc::CallContext& call, dirpath path) {
    return at_once(pathconf2(server, call, path));
  });
  return program;
}

rpc::Program program3(const ServerContext& server, MountList& mounts) {
  using namespace mount3;
  rpc::Program program =
      common<MOUNTPROC3_DUMP, MOUNTPROC3_UMNT, MOUNTPROC3_UMNTALL, MOUNTPROC3_EXPORT>(server,
                                                                                      mounts);
  program.add<MOUNTPROC3_MNT>([&server, &mounts](rpc::CallContext& call, dirpath path) {
    return mnt3(server, mounts, call, std::move(path));
  });
  return program;
}

}  // namespace stag::nfs::mount
