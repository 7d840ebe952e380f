#include "nfs/server/mount/mount1.h"

#include <algorithm>
#include <limits>

#include "base/reason.h"
#include "nfs/ulb/nfs3.h"

namespace stag::nfs::mount {

namespace {

mount3::fhstatus refused(mount3::mountstat3 status) {
  mount3::fhstatus res;
  // A.4.2: a UNIX error number; up to 10000 version 3's are those.
  res.status = static_cast<std::uint32_t>(status < 10000 ? status : mount3::MNT3ERR_IO);
  return res;
}

Task<mount3::fhstatus> mnt1(const Served& served, MountList& mounts, const rpc::CallContext& call,
                            mount3::dirpath path) {
  const mount3::mountres3 found = co_await mnt(served, mounts, call, path);
  if (found.fhs_status != mount3::MNT3_OK) co_return refused(found.fhs_status);
  const auto object = served.handles.open(found.mountinfo().fhandle.bytes());
  STAG_CHECK(object.has_value());
  const auto handle = served.handles.seal2(object->export_id, object->object);
  if (!handle) {
    trace(Reason::NfsHandleTooLong, path);
    co_return refused(mount3::MNT3ERR_IO);
  }
  mount3::fhstatus res;
  res.directory() = *handle;
  co_return res;
}

// Of the file system that the path lies in; zeros for a caller that it is not open to.
mount3::ppathcnf pathconf2(const Served& served, const rpc::CallContext& call,
                           std::string_view path) {
  mount3::ppathcnf res;
  const auto normal = normal_path(path);
  const auto table = served.exports.current();
  const auto match = normal ? table->match(*normal) : std::nullopt;
  if (!match || !admit(*match->found, match->found->file_system().root(), call)) return res;
  const vfs::Limits limits = match->found->file_system().limits();
  constexpr std::uint32_t kMost = std::numeric_limits<std::int32_t>::max();
  res.pc_link_max = static_cast<std::int32_t>(std::min(limits.max_links, kMost));
  res.pc_name_max = static_cast<std::int32_t>(std::min(limits.max_name, kMost));
  res.pc_path_max = mount3::MNTPATHLEN;
  return res;
}

template <class T>
Task<T> at_once(T value) {
  co_return value;
}

// The procedures that both versions have, each with numbers of its own.
template <class Mnt, class Dump, class Umnt, class UmntAll, class Export, class ExportAll>
rpc::Program made(const Served& served, MountList& mounts) {
  rpc::Program program(Mnt::program, Mnt::version, ulb::mount3());
  program.add<Mnt>([&served, &mounts](rpc::CallContext& call, mount3::dirpath path) {
    return mnt1(served, mounts, call, std::move(path));
  });
  program.add<Dump>([&mounts](rpc::CallContext&, xdr::Void) { return at_once(dump(mounts)); });
  program.add<Umnt>([&mounts](rpc::CallContext& call, mount3::dirpath path) {
    if (const auto normal = normal_path(path)) mounts.remove(host_of(call), *normal);
    return at_once(xdr::Void{});
  });
  program.add<UmntAll>([&mounts](rpc::CallContext& call, xdr::Void) {
    mounts.remove_all(host_of(call));
    return at_once(xdr::Void{});
  });
  const auto list = [&served](rpc::CallContext&, xdr::Void) { return at_once(exports(served)); };
  program.add<Export>(list);
  program.add<ExportAll>(list);
  // RFC 8267 5.1: MOUNT is a TCP service.
  program.absent_from(rpc::TransportKind::Rdma);
  return program;
}

}  // namespace

rpc::Program program1(const Served& served, MountList& mounts) {
  using namespace mount3;
  return made<MOUNTPROC1_MNT, MOUNTPROC1_DUMP, MOUNTPROC1_UMNT, MOUNTPROC1_UMNTALL,
              MOUNTPROC1_EXPORT, MOUNTPROC1_EXPORTALL>(served, mounts);
}

rpc::Program program2(const Served& served, MountList& mounts) {
  using namespace mount3;
  rpc::Program program = made<MOUNTPROC2_MNT, MOUNTPROC2_DUMP, MOUNTPROC2_UMNT, MOUNTPROC2_UMNTALL,
                              MOUNTPROC2_EXPORT, MOUNTPROC2_EXPORTALL>(served, mounts);
  program.add<MOUNTPROC2_PATHCONF>([&served](rpc::CallContext& call, dirpath path) {
    return at_once(pathconf2(served, call, path));
  });
  return program;
}

}  // namespace stag::nfs::mount
