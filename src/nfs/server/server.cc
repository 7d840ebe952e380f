#include "nfs/server/server.h"

#include "nfs/server/acl/acl.h"
#include "nfs/server/mount/mount1.h"
#include "nfs/server/v2/procedures.h"
#include "nfs/server/v3/procedures.h"
#include "nfs/ulb/nfs3.h"
#include "rpc/server.h"

namespace stag::nfs {

namespace {

// An answer that needed no waiting.
template <class T>
Task<T> ready(T value) {
  co_return value;
}

// A procedure as a handler of the program.
template <class P, auto procedure>
void add(rpc::Program& program, const Served& served) {
  program.add<P>([&served](rpc::CallContext& call, typename P::Args args) {
    return procedure(Request(served, call, P::number), std::move(args));
  });
}

void add_data_procedures(rpc::Program& program, const Served& served) {
  add<v3::NFSPROC3_GETATTR, nfs3::getattr>(program, served);
  add<v3::NFSPROC3_SETATTR, nfs3::setattr>(program, served);
  add<v3::NFSPROC3_LOOKUP, nfs3::lookup>(program, served);
  add<v3::NFSPROC3_ACCESS, nfs3::access>(program, served);
  add<v3::NFSPROC3_READLINK, nfs3::readlink>(program, served);
  add<v3::NFSPROC3_READ, nfs3::read>(program, served);
  add<v3::NFSPROC3_WRITE, nfs3::write>(program, served);
  add<v3::NFSPROC3_COMMIT, nfs3::commit>(program, served);
  add<v3::NFSPROC3_FSSTAT, nfs3::fsstat>(program, served);
  add<v3::NFSPROC3_FSINFO, nfs3::fsinfo>(program, served);
  add<v3::NFSPROC3_PATHCONF, nfs3::pathconf>(program, served);
}

void add_directory_procedures(rpc::Program& program, const Served& served) {
  add<v3::NFSPROC3_CREATE, nfs3::create>(program, served);
  add<v3::NFSPROC3_MKDIR, nfs3::mkdir>(program, served);
  add<v3::NFSPROC3_SYMLINK, nfs3::symlink>(program, served);
  add<v3::NFSPROC3_MKNOD, nfs3::mknod>(program, served);
  add<v3::NFSPROC3_REMOVE, nfs3::remove>(program, served);
  add<v3::NFSPROC3_RMDIR, nfs3::rmdir>(program, served);
  add<v3::NFSPROC3_RENAME, nfs3::rename>(program, served);
  add<v3::NFSPROC3_LINK, nfs3::link>(program, served);
  add<v3::NFSPROC3_READDIR, nfs3::readdir>(program, served);
  add<v3::NFSPROC3_READDIRPLUS, nfs3::readdirplus>(program, served);
}

void add_mount_procedures(rpc::Program& program, const Served& served, MountList& mounts) {
  program.add<mount3::MOUNTPROC3_MNT>(
      [&served, &mounts](rpc::CallContext& call, mount3::dirpath path) {
        return mount::mnt(served, mounts, call, std::move(path));
      });
  program.add<mount3::MOUNTPROC3_DUMP>(
      [&mounts](rpc::CallContext&, xdr::Void) { return ready(mount::dump(mounts)); });
  program.add<mount3::MOUNTPROC3_UMNT>([&mounts](rpc::CallContext& call, mount3::dirpath path) {
    if (const auto normal = normal_path(path)) mounts.remove(mount::host_of(call), *normal);
    return ready(xdr::Void{});
  });
  program.add<mount3::MOUNTPROC3_UMNTALL>([&mounts](rpc::CallContext& call, xdr::Void) {
    mounts.remove_all(mount::host_of(call));
    return ready(xdr::Void{});
  });
  program.add<mount3::MOUNTPROC3_EXPORT>(
      [&served](rpc::CallContext&, xdr::Void) { return ready(mount::exports(served)); });
}

}  // namespace

NfsServer::NfsServer(const ServerState& state)
    : served_(std::make_unique<Served>(FileHandles(state.handle_key), state.boot_verifier)),
      mounts_(std::make_unique<MountList>()) {}

NfsServer::~NfsServer() = default;

Result<Ok, ExportError> NfsServer::add_export(std::string_view path,
                                              std::shared_ptr<vfs::FileSystem> file_system,
                                              const ExportOptions& options,
                                              std::vector<ClientRule> clients) {
  std::vector<ExportSpec> specs;
  for (const Export& there : exports()->all()) specs.push_back(there.spec);
  specs.push_back({std::string(path), std::move(file_system), options, std::move(clients)});
  return replace_exports(std::move(specs));
}

Result<Ok, ExportError> NfsServer::replace_exports(std::vector<ExportSpec> specs) {
  Exports next;
  for (ExportSpec& spec : specs) {
    const std::string normal = normal_path(spec.path).value_or(spec.path);
    const std::uint32_t id = served_->handles.export_id(normal, spec.file_system->identity());
    const Result<Ok, ExportError> added = next.add(id, std::move(spec));
    if (!added) return added;
  }
  served_->exports.replace(std::move(next));
  return Ok{};
}

std::shared_ptr<const Exports> NfsServer::exports() const {
  return served_->exports.current();
}

std::uint64_t NfsServer::file_system_id(std::string_view path) const {
  return served_->handles.file_system_id(normal_path(path).value_or(std::string(path)));
}

void NfsServer::add_nfs(rpc::Server& server) {
  // Their data does not fit a datagram.
  const auto add_large = [&server](rpc::Program program) {
    program.absent_from(rpc::TransportKind::Udp);
    server.add(std::move(program));
  };
  rpc::Program nfs(v3::NFSPROC3_READ::program, v3::NFSPROC3_READ::version, ulb::nfs3());
  add_data_procedures(nfs, *served_);
  add_directory_procedures(nfs, *served_);
  add_large(std::move(nfs));
  add_large(nfs2::program(*served_));
  // RFC 8267 5.2: on the connection that carries NFS, over whatever transport.
  add_large(acl::program2(*served_));
  add_large(acl::program3(*served_));
}

void NfsServer::add_programs(rpc::Server& server) {
  add_nfs(server);
  rpc::Program mount(mount3::MOUNTPROC3_MNT::program, mount3::MOUNTPROC3_MNT::version,
                     ulb::mount3());
  add_mount_procedures(mount, *served_, *mounts_);
  // RFC 8267 5.1: MOUNT is a TCP service.
  mount.absent_from(rpc::TransportKind::Rdma);
  server.add(std::move(mount));
  server.add(mount::program1(*served_, *mounts_));
  server.add(mount::program2(*served_, *mounts_));
}

}  // namespace stag::nfs
