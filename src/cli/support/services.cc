#include "cli/support/services.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <tuple>

#include "nfs/client/session/mount.h"
#include "nfs/export/exports.h"
#include "nfs/proto/mount3.h"
#include "nfs/proto/nfs3.h"
#include "rpcbind/lookup.h"
#include "rpcbind/universal_address.h"

namespace stag::cli {
namespace {

using ChannelResult = rpc::CallResult<std::unique_ptr<rpc::Channel>>;

struct Name {
  std::uint32_t program;
  std::string_view name;
};
// Programs that servers offer at the NFS port when there is no rpcbind.
constexpr std::uint32_t kNlm = 100021, kNsm = 100024, kNfsacl = 100227;
constexpr Name kNames[] = {
    {100000, "rpcbind"}, {100003, "nfs"},  {100005, "mountd"},   {100011, "rquotad"},
    {kNlm, "nlockmgr"},  {kNsm, "status"}, {kNfsacl, "nfs_acl"},
};

std::string version_range(std::uint32_t low, std::uint32_t high) {
  return low == high ? std::to_string(low) : fmt::format("{}-{}", low, high);
}

// The state of one search.
class Search {
 public:
  Search(Run& run, std::string host, const RemoteOptions& options, Findings& findings)
      : run_(run), host_(std::move(host)), options_(options), findings_(findings) {}

  Task<void> ask_rpcbind(std::uint32_t port) {
    const std::unique_ptr<rpc::Connector> connector = tcp_connector(run_.loop, options_);
    ChannelResult channel = co_await connect(*connector, port);
    if (!channel) co_return;
    auto list = co_await rpcbind::list(**channel, call_options());
    if (list) {
      const auto before = [](const rpcbind::Registration& a, const rpcbind::Registration& b) {
        return std::tie(a.program, a.version) < std::tie(b.program, b.version);
      };
      std::stable_sort(list->begin(), list->end(), before);
      for (const rpcbind::Registration& entry : *list) add(entry);
    }
    co_await (*channel)->close();
  }

  // Program after program, on one connection.
  Task<void> ask(rpc::Connector& connector, std::string netid, std::uint32_t port,
                 std::vector<std::uint32_t> programs) {
    ChannelResult channel = co_await connect(connector, port);
    if (!channel) co_return;
    rpc::Client client(**channel, {}, own_credentials());
    for (const std::uint32_t program : programs) {
      const std::string versions = co_await versions_of(client, program);
      if (versions.empty()) continue;
      const auto same = [&](const Service& known) {
        return known.program == program && known.netid == netid && known.port == port;
      };
      std::erase_if(findings_.services, same);
      findings_.services.push_back({program, versions, netid, port, true});
      if (program == nfs::mount3::MOUNT_PROGRAM) co_await ask_exports(**channel);
    }
    co_await (*channel)->close();
  }

  // The port of `program` on `transport` in rpcbind, for IPv4 or IPv6; 0 when there is none.
  std::uint32_t port_of(std::uint32_t program, std::string_view transport) const {
    for (const std::string& netid : rpcbind::netids_for(transport, host_))
      for (const Service& service : findings_.services)
        if (service.program == program && service.netid == netid) return service.port;
    return 0;
  }

 private:
  Task<ChannelResult> connect(rpc::Connector& connector, std::uint32_t port) {
    const Address at{host_, static_cast<std::uint16_t>(port)};
    ChannelResult channel = co_await connector.connect(at, run_.cancel);
    if (!channel) findings_.trouble = channel.error().message();
    co_return channel;
  }

  rpc::CallOptions call_options() const {
    rpc::CallOptions options;
    options.timeout = std::chrono::seconds(options_.timeout);
    options.cancel = run_.cancel;
    return options;
  }

  // No program has version 0, so PROG_MISMATCH lists the versions served (RFC 5531 section 9).
  Task<std::string> versions_of(rpc::Client client, std::uint32_t program) {
    const rpc::CallResult<Ok> answer = co_await client.ping(program, 0, call_options());
    if (answer) co_return "0";
    const rpc::CallError& error = answer.error();
    if (error.kind != rpc::CallError::Kind::Answered) {
      findings_.trouble = error.message();
      co_return "";
    }
    if (error.status.accept != oncrpc::AcceptStat::PROG_MISMATCH) co_return "";
    co_return version_range(error.status.versions.low, error.status.versions.high);
  }

  Task<void> ask_exports(rpc::Channel& channel) {
    const Outcome<std::vector<nfs::client::ListedExport>> list =
        co_await nfs::client::list_exports(channel, own_credentials(), call_options());
    if (!list) co_return;
    findings_.exports.emplace();
    for (const nfs::client::ListedExport& listed : *list) {
      FoundExport& found = findings_.exports->emplace_back(FoundExport{listed});
      // One that this client may not mount is mounted by nobody here.
      const auto flavors =
          co_await nfs::client::flavors_of(channel, listed.path, own_credentials(), call_options());
      if (!flavors) continue;
      for (const std::uint32_t flavor : *flavors) {
        const std::string_view name = nfs::flavor_name(static_cast<oncrpc::AuthFlavor>(flavor));
        found.flavors.push_back(name.empty() ? std::to_string(flavor) : std::string(name));
      }
    }
  }

  void add(const rpcbind::Registration& entry) {
    // Addresses of local sockets (AF_UNIX) are no internet addresses.
    const std::optional<Address> at = rpcbind::from_universal(entry.address);
    if (!at) return;
    for (Service& known : findings_.services) {
      if (known.program != entry.program || known.netid != entry.netid || known.port != at->port)
        continue;
      known.versions += fmt::format(",{}", entry.version);
      return;
    }
    findings_.services.push_back(
        {entry.program, std::to_string(entry.version), entry.netid, at->port, false});
  }

  Run& run_;
  const std::string host_;
  const RemoteOptions options_;
  Findings& findings_;
};

}  // namespace

std::string_view program_name(std::uint32_t program) {
  const auto* found = std::find_if(std::begin(kNames), std::end(kNames),
                                   [&](const Name& name) { return name.program == program; });
  return found == std::end(kNames) ? "" : found->name;
}

Task<Findings> look_for_services(Run& run, std::string host, Ports ports, RemoteOptions options,
                                 std::optional<nfs::client::Url::Fabric> fabric) {
  constexpr std::uint32_t kNfs = nfs::v3::NFS_PROGRAM;
  constexpr std::uint32_t kMount = nfs::mount3::MOUNT_PROGRAM;
  Findings findings;
  Search search(run, host, options, findings);
  co_await search.ask_rpcbind(ports.rpcbind);
  nfs::client::Url url;
  url.fabric = fabric;
  const std::unique_ptr<rpc::Connector> rdma = nfs_connector(run.loop, url, options);
  const std::unique_ptr<rpc::Connector> tcp = tcp_connector(run.loop, options);
  // Not in a braced list: those and co_await do not go together in every compiler.
  const std::vector<std::uint32_t> all{kNfs, kMount, kNfsacl, kNlm, kNsm};
  const std::vector<std::uint32_t> only_nfs{kNfs}, only_mount{kMount};
  const auto own = [&](std::string_view transport) {
    return rpcbind::netid(transport, rpcbind::is_ipv6(host));
  };
  co_await search.ask(*rdma, own(rpcbind::kRdma), ports.rdma, only_nfs);
  const std::uint32_t registered = search.port_of(kNfs, rpcbind::kRdma);
  if (registered != 0 && registered != ports.rdma)
    co_await search.ask(*rdma, own(rpcbind::kRdma), registered, only_nfs);
  co_await search.ask(*tcp, own(rpcbind::kTcp), ports.tcp, all);
  const std::uint32_t mount_port = search.port_of(kMount, rpcbind::kTcp);
  if (!findings.exports && mount_port != 0)
    co_await search.ask(*tcp, own(rpcbind::kTcp), mount_port, only_mount);
  co_return findings;
}

}  // namespace stag::cli
