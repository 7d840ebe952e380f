#include "cli/support/services.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <tuple>

#include "base/task_group.h"
#include "nfs/client/session/mount.h"
#include "nfs/export/exports.h"
#include "nfs/proto/mount3.h"
#include "nfs/proto/nfs3.h"
#include "rpcbind/lookup.h"
#include "rpcbind/universal_address.h"

namespace stag::cli {
namespace {

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

bool is_silence(const rpc::CallError& error) {
  return error.kind == rpc::CallError::Kind::Transport && error.reason == Reason::TimedOut;
}

// What `later` has found comes to `findings`, in place of what was known only from rpcbind.
void merge(Findings& findings, Findings later) {
  for (Service& found : later.services) {
    const auto same = [&](const Service& known) {
      return known.program == found.program && known.netid == found.netid &&
             known.port == found.port;
    };
    std::erase_if(findings.services, same);
    findings.services.push_back(std::move(found));
  }
  if (later.exports) findings.exports = std::move(later.exports);
  if (!later.trouble.empty()) findings.trouble = std::move(later.trouble);
}

// What one port knows.
class Search {
 public:
  Search(Run& run, std::string host, const RemoteOptions& options)
      : run_(run), host_(std::move(host)), options_(options) {}

  Task<void> ask_rpcbind(std::uint32_t port) {
    const std::unique_ptr<rpc::Connector> connector = tcp_connector(run_.loop, options_);
    rpc::ConnectedChannel channel = co_await connect(*connector, port);
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

  // Program after program, on one connection. A server that is silent about one is not asked for
  // the others: each would take as long.
  Task<void> ask(rpc::Connector& connector, std::string netid, std::uint32_t port,
                 std::vector<std::uint32_t> programs) {
    rpc::ConnectedChannel channel = co_await connect(connector, port);
    if (!channel) co_return;
    rpc::Client client(**channel, {}, own_credentials());
    for (const std::uint32_t program : programs) {
      if (silent_) break;
      const std::string versions = co_await versions_of(client, program);
      if (versions.empty()) continue;
      findings_.services.push_back({program, versions, netid, port, true});
      if (program == nfs::mount3::MOUNT_PROGRAM) co_await ask_exports(**channel);
    }
    co_await (*channel)->close();
  }

  Findings& findings() { return findings_; }

 private:
  Task<rpc::ConnectedChannel> connect(rpc::Connector& connector, std::uint32_t port) {
    const Address at{host_, static_cast<std::uint16_t>(port)};
    rpc::ConnectedChannel channel = co_await connect_patiently(run_, connector, at, options_);
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
      silent_ = is_silence(error);
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
      if (silent_) continue;
      // One that this client may not mount is mounted by nobody here.
      const auto flavors =
          co_await nfs::client::flavors_of(channel, listed.path, own_credentials(), call_options());
      silent_ = !flavors && flavors.error().kind == nfs::client::Error::Kind::Call &&
                is_silence(flavors.error().call);
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
  Findings findings_;
  bool silent_ = false;  // a call has had no answer in time
};

// The port of `program` on `transport` in rpcbind, for IPv4 or IPv6; 0 when there is none.
std::uint32_t port_of(const Findings& findings, std::uint32_t program, std::string_view transport,
                      const std::string& host) {
  for (const std::string& netid : rpcbind::netids_for(transport, host))
    for (const Service& service : findings.services)
      if (service.program == program && service.netid == netid) return service.port;
  return 0;
}

}  // namespace

std::string_view program_name(std::uint32_t program) {
  const auto* found = std::find_if(std::begin(kNames), std::end(kNames),
                                   [&](const Name& name) { return name.program == program; });
  return found == std::end(kNames) ? "" : found->name;
}

namespace {

// The ports of one host, asked side by side: one that is silent does not hold up the others.
class HostSearch {
 public:
  HostSearch(Run& run, std::string host, const RemoteOptions& options, const nfs::client::Url& url)
      : run_(run),
        host_(std::move(host)),
        options_(options),
        rdma_(nfs_connector(run.loop, url, options)),
        tcp_(tcp_connector(run.loop, options)) {}

  Task<Findings> run(Ports ports) {
    co_await usual_ports(ports);
    const std::uint32_t rdma = port_of(findings_, kNfs, rpcbind::kRdma, host_);
    const std::uint32_t mount = port_of(findings_, kMount, rpcbind::kTcp, host_);
    co_await registered_ports(rdma != ports.rdma ? rdma : 0, findings_.exports ? 0 : mount);
    co_return std::move(findings_);
  }

 private:
  static constexpr std::uint32_t kNfs = nfs::v3::NFS_PROGRAM;
  static constexpr std::uint32_t kMount = nfs::mount3::MOUNT_PROGRAM;

  Task<void> usual_ports(Ports ports) {
    Search registered = search(), rdma = search(), tcp = search();
    TaskGroup group;
    co_await joined(group, begin_usual(group, ports, registered, rdma, tcp));
    for (Search* each : {&registered, &rdma, &tcp}) merge(findings_, std::move(each->findings()));
  }
  Task<Ok> begin_usual(TaskGroup& group, Ports ports, Search& registered, Search& rdma,
                       Search& tcp) {
    // Not in braced lists: those and co_await do not go together in every compiler.
    const std::vector<std::uint32_t> only_nfs{kNfs}, all{kNfs, kMount, kNfsacl, kNlm, kNsm};
    group.add(registered.ask_rpcbind(ports.rpcbind));
    group.add(rdma.ask(*rdma_, own(rpcbind::kRdma), ports.rdma, only_nfs));
    group.add(tcp.ask(*tcp_, own(rpcbind::kTcp), ports.tcp, all));
    co_return Ok{};
  }
  // Where rpcbind has them elsewhere; 0: it has not.
  Task<void> registered_ports(std::uint32_t rdma_port, std::uint32_t mount_port) {
    Search rdma = search(), mount = search();
    TaskGroup group;
    co_await joined(group, begin_registered(group, rdma_port, mount_port, rdma, mount));
    for (Search* each : {&rdma, &mount}) merge(findings_, std::move(each->findings()));
  }
  Task<Ok> begin_registered(TaskGroup& group, std::uint32_t rdma_port, std::uint32_t mount_port,
                            Search& rdma, Search& mount) {
    const std::vector<std::uint32_t> only_nfs{kNfs}, only_mount{kMount};
    if (rdma_port != 0) group.add(rdma.ask(*rdma_, own(rpcbind::kRdma), rdma_port, only_nfs));
    if (mount_port != 0) group.add(mount.ask(*tcp_, own(rpcbind::kTcp), mount_port, only_mount));
    co_return Ok{};
  }

  Search search() const { return Search(run_, host_, options_); }
  std::string own(std::string_view transport) const {
    return rpcbind::netid(transport, rpcbind::is_ipv6(host_));
  }

  Run& run_;
  const std::string host_;
  const RemoteOptions options_;
  const std::unique_ptr<rpc::Connector> rdma_, tcp_;
  Findings findings_;
};

}  // namespace

Task<Findings> look_for_services(Run& run, std::string host, Ports ports, RemoteOptions options,
                                 std::optional<nfs::client::Url::Fabric> fabric) {
  nfs::client::Url url;
  url.fabric = fabric;
  HostSearch search(run, std::move(host), options, url);
  co_return co_await search.run(ports);
}

}  // namespace stag::cli
