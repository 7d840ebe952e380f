#include "nfs/server/server.h"

#include "nfs/export/server_context.h"
#include "nfs/server/acl/acl.h"
#include "nfs/server/mount/mount.h"
#include "nfs/server/mount/mount_list.h"
#include "nfs/server/v2/procedures.h"
#include "nfs/server/v3/procedures.h"
#include "rpc/server.h"

namespace stag::nfs {

NfsServer::NfsServer(const ServerState& state)
    : context_(std::make_unique<ServerContext>(state)), mounts_(std::make_unique<MountList>()) {}

NfsServer::~NfsServer() = default;

Result<Ok, ExportError> NfsServer::add_export(std::string_view path,
                                              std::shared_ptr<vfs::FileSystem> file_system,
                                              const ExportOptions& options,
                                              std::vector<ClientRule> clients) {
  std::vector<ExportSpec> specs;
  const auto present = exports();
  for (const Export& there : present->all()) specs.push_back(there.spec);
  specs.push_back({std::string(path), std::move(file_system), options, std::move(clients)});
  return replace_exports(std::move(specs));
}

Result<Ok, ExportError> NfsServer::replace_exports(std::vector<ExportSpec> specs) {
  Exports next;
  for (ExportSpec& spec : specs) {
    const std::string normal = normal_path(spec.path).value_or(spec.path);
    const std::uint32_t id = context_->handles.export_id(normal, spec.file_system->identity());
    const Result<Ok, ExportError> added = next.add(id, std::move(spec));
    if (!added) return added;
  }
  context_->exports.replace(std::move(next));
  context_->gate->exports_replaced();
  return Ok{};
}

std::shared_ptr<const Exports> NfsServer::exports() const {
  return context_->exports.current();
}

std::vector<std::pair<std::string, std::string>> NfsServer::mounts() const {
  std::vector<std::pair<std::string, std::string>> mounts;
  for (MountList::Entry& entry : mounts_->all())
    mounts.emplace_back(std::move(entry.host), std::move(entry.path));
  return mounts;
}

std::uint64_t NfsServer::file_system_id(std::string_view path) const {
  return context_->handles.file_system_id(normal_path(path).value_or(std::string(path)));
}

void NfsServer::add_nfs(rpc::Server& server) {
  // Their data does not fit a datagram.
  const auto add_large = [&server](rpc::Program program) {
    program.absent_from(rpc::TransportKind::Udp);
    server.add(std::move(program));
  };
  add_large(nfs3::program(*context_));
  add_large(nfs2::program(*context_));
  // RFC 8267 5.2: on the connection that carries NFS, over whatever transport.
  add_large(acl::program2(*context_));
  add_large(acl::program3(*context_));
}

void NfsServer::add_programs(rpc::Server& server) {
  add_nfs(server);
  server.add(mount::program1(*context_, *mounts_));
  server.add(mount::program2(*context_, *mounts_));
  server.add(mount::program3(*context_, *mounts_));
}

}  // namespace stag::nfs
