#include "cli/support/remote.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <vector>

#include "base/pause.h"
#include "cli/support/connect_retry.h"
#include "cli/support/output.h"
#include "endpoint/callback_listener.h"
#include "endpoint/kerberos.h"
#include "endpoint/software.h"
#include "fabric/iwarp/iwarp_fabric.h"
#include "fabric/verbs/verbs_fabric.h"
#include "net/socket_address.h"
#include "nfs/client/session/endpoint_discovery.h"

namespace stag::cli {
namespace {

using nfs::client::Error;
using nfs::client::Status;
using nfs::client::Url;

constexpr std::uint32_t kLongestConnect = 10;  // seconds
constexpr auto kCleaningTimeout = std::chrono::seconds(5);

// Of one attempt. What the user says is spent in attempts of about ten seconds, as a host that
// comes back is found by a new one sooner.
Duration connect_timeout(const RemoteOptions& options) {
  if (!options.timeout_given)
    return std::chrono::seconds(std::min(options.timeout, kLongestConnect));
  const std::uint32_t more = options.timeout / (kLongestConnect + 1);
  return (std::chrono::seconds(options.timeout) - more * ConnectRetry::kPause) / (more + 1);
}

endpoint::ConnectorOptions connector_options(const RemoteOptions& options) {
  endpoint::ConnectorOptions connector;
  connector.rdma.connect_timeout = connect_timeout(options);
  connector.rdma.reconnect_for = std::chrono::seconds(options.timeout);
  connector.rdma.transport = options.rdma;
  connector.rdma.credits = options.credits;
  connector.tcp.connect_timeout = connect_timeout(options);
  connector.verbs.device = options.device;
  connector.verbs.open_regions = options.open_regions;
  return connector;
}

endpoint::FabricKind fabric_of(const Url& url, const RemoteOptions& options) {
  const std::string_view option = options.fabric;
  const Url::Fabric chosen = option == "verbs"  ? Url::Fabric::Verbs
                             : option == "auto" ? Url::Fabric::Auto
                                                : Url::Fabric::Iwarp;
  switch (url.fabric.value_or(chosen)) {
    case Url::Fabric::Verbs:
      return endpoint::FabricKind::Verbs;
    case Url::Fabric::Auto:
      return endpoint::FabricKind::Auto;
    case Url::Fabric::Iwarp:
      break;
  }
  return endpoint::FabricKind::Iwarp;
}

std::string machine_name() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return host.data();
}

// Those of this process, but for what the URL says of the user; that user has no further groups.
rpc::Credentials user_credentials(const Url& url) {
  if (!url.uid && !url.gid) return own_credentials();
  return rpc::Credentials::sys(machine_name(), url.uid.value_or(geteuid()),
                               url.gid.value_or(getegid()), {});
}

// Reports the choice of --fabric auto, on standard error.
void tell_choice(endpoint::FabricKind chosen, Reason reason) {
  if (chosen == endpoint::FabricKind::Verbs)
    write_error("stag: connected by an RDMA device\n");
  else
    write_error(fmt::format("stag: connected by software iWARP over TCP: {}\n", info(reason).text));
}

}  // namespace

BeginPatience begin_patience(const RemoteOptions& options) {
  const std::chrono::seconds timeout(options.timeout);
  if (options.timeout_given) return {timeout, timeout};
  return {options.hard ? connect_timeout(options) : timeout, Duration::zero()};
}

nfs::client::FileSystemOptions file_system_options(const Url& url, const RemoteOptions& options) {
  nfs::client::FileSystemOptions files;
  files.mount_credentials = user_credentials(url);
  files.calls.timeout = std::chrono::seconds(options.timeout);
  // Else a restarted server's grace period is waited for, which is longer than 60 s.
  if (options.hard || options.timeout_given) files.calls.jukebox_for = files.calls.timeout;
  files.calls.delegations = options.delegations;
  files.calls.offloads = options.offloads;
  return files;
}

void RemoteOptions::declare(Arguments& arguments) {
  arguments.number("--timeout", timeout, timeout_given, 1, 1u << 20,
                   "seconds to wait for a server that does not answer; for one that cannot be "
                   "connected to, 10 unless this is given");
  arguments.choice("--fabric", fabric, {"iwarp", "verbs", "auto"},
                   "where RDMA comes from unless the URL says: software iWARP over TCP, an RDMA "
                   "device (stag devices), or a device if there is a way by one");
  arguments.text("--device", device, "NAME", "the only RDMA device to be used [any]");
  arguments.flag("--verbs-open-mr", open_regions,
                 "RDMA devices: copy through memory that stays registered and open to the server "
                 "for the whole connection; it can read what earlier calls left there");
  declare_rdma(arguments, rdma, credits);
}

void declare_rdma(Arguments& arguments, rpc::rdma::TransportOptions& transport,
                  std::uint32_t& credits) {
  // RFC 8166 3.3.3: what every peer takes; RFC 8797 4.2: what private data can say.
  constexpr std::uint32_t kLeast = 1024;
  constexpr std::uint32_t kMost = 256 * 1024;
  constexpr std::uint32_t kMostCredits = 4096;
  arguments.size("--inline-threshold", transport.inline_size, kLeast, kMost,
                 fmt::format("bytes of the longest RDMA Send and Receive [{} for calls, {} for "
                             "replies]",
                             endpoint::kSoftwareCallSize, rpc::rdma::kUsualInlineSize));
  arguments.number("--credits", credits, 1, kMostCredits,
                   "calls that a connection over RDMA may have in progress");
  arguments.flag("--crc", transport.crc, "ask for CRC32C on every FPDU of iWARP");
}

rpc::Credentials own_credentials() {
  // Into less room than it has groups for the system puts none.
  const int count = std::max(getgroups(0, nullptr), 0);
  std::vector<gid_t> groups(static_cast<std::size_t>(count));
  if (getgroups(count, groups.data()) != count) groups.clear();
  return rpc::Credentials::sys(machine_name(), geteuid(), getegid(), groups);
}

namespace {

Outcome<rpc::Credentials> kerberos_credentials(const Url& url, gss::Service service) {
  auto credentials = endpoint::kerberos(url.host, service);
  if (credentials) return *std::move(credentials);
  const gss::Error& why = credentials.error();
  return Failure{Error::of_url(fmt::format("in the URL, sec: {}{}{}", info(why.reason).text,
                                           why.detail.empty() ? "" : "; ", why.detail))};
}

// Where those of the files have no integrity: the same user's, with it.
Outcome<std::optional<rpc::Credentials>> machine_credentials(const Url& url) {
  if (url.security != Url::Security::Krb5 || url.version.value_or(4) != 4)
    return std::optional<rpc::Credentials>();
  Outcome<rpc::Credentials> made = kerberos_credentials(url, gss::Service::integrity);
  if (!made) return Failure{made.error()};
  return std::optional(*std::move(made));
}

}  // namespace

Outcome<rpc::Credentials> nfs_credentials(const Url& url) {
  using gss::Service;
  if (url.security == Url::Security::Sys) return user_credentials(url);
  return kerberos_credentials(url, url.security == Url::Security::Krb5p   ? Service::privacy
                                   : url.security == Url::Security::Krb5i ? Service::integrity
                                                                          : Service::none);
}

std::unique_ptr<rpc::Connector> nfs_connector(net::EpollLoop& loop, const Url& url,
                                              const RemoteOptions& options, Duration reserve,
                                              bool tells_choice) {
  endpoint::ConnectorOptions connector = connector_options(options);
  connector.rdma.connect_timeout -= reserve;
  if (url.protocol == Url::Protocol::Tcp) connector.transport = endpoint::Transport::Tcp;
  connector.fabric = fabric_of(url, options);
  if (tells_choice) connector.on_choice = tell_choice;
  connector.rdma.transfer_stats = options.transfer_stats;
  return endpoint::make_connector(loop, connector);
}

std::unique_ptr<fabric::Fabric> rdma_fabric(net::EpollLoop& loop, const Url& url,
                                            const RemoteOptions& options) {
  const endpoint::ConnectorOptions connector = connector_options(options);
  if (fabric_of(url, options) == endpoint::FabricKind::Verbs)
    return std::make_unique<fabric::VerbsFabric>(loop, connector.verbs);
  return std::make_unique<fabric::IwarpFabric>(loop, connector.iwarp);
}

std::unique_ptr<rpc::Connector> tcp_connector(net::EpollLoop& loop, const RemoteOptions& options) {
  endpoint::ConnectorOptions connector = connector_options(options);
  connector.transport = endpoint::Transport::Tcp;
  return endpoint::make_connector(loop, connector);
}

Task<rpc::ConnectedChannel> connect_patiently(Run& run, rpc::Connector& connector, Address at,
                                              const RemoteOptions& options) {
  const ConnectRetry retry(run.loop.now(), begin_patience(options).all_tries, Duration::zero());
  for (;;) {
    rpc::ConnectedChannel channel = co_await connector.connect(at, run.cancel);
    if (channel || !retry.goes_on(Error::of_call({"connect", {}}, channel.error()), run.loop.now()))
      co_return channel;
    co_await pause(run.loop, ConnectRetry::kPause, run.cancel);
    if (run.cancel.cancelled()) co_return channel;
  }
}

Remote::Remote(Run& run, const RemoteOptions& options)
    : run_(run), resolve_for_(connect_timeout(options)), on_interrupt_(run.cancel, [this, &run] {
        settling_time_ = run.loop.after(kCleaningTimeout, [this] { settled_.cancel(); });
      }) {}

// The files of the session with another timeout and cancellation.
void Remote::share(nfs::client::FileSystemOptions options) {
  options_ = options;
  const auto with = [&] {
    return std::make_unique<nfs::client::FileSystem>(files().with(options));
  };
  options.calls.cancel = settled_;
  settling_ = with();
  options.calls.cancel = {};
  options.calls.timeout = kCleaningTimeout;
  options.calls.jukebox_for = kCleaningTimeout;
  cleaner_ = with();
}

nfs::client::FileSystem Remote::files_until(CancelToken cancel) const {
  nfs::client::FileSystemOptions options = options_;
  options.calls.cancel = cancel;
  return session_->files().with(options);
}

std::string Remote::slashed_path() const {
  const bool lost = !path().empty() && !path().ends_with('/') && url().path.ends_with('/');
  return path() + (lost ? "/" : "");
}

// RFC 1094 2.3.4, RFC 1813 2.6; in version 2 the last number means "do not change" (2.3.6).
TimeRange Remote::times() const {
  if (url().version == 4) return {};
  constexpr std::int64_t kLast = std::numeric_limits<std::uint32_t>::max();
  return {.first = 0, .last = url().version == 2 ? kLast - 1 : kLast};
}

Task<Outcome<Address>> Remote::numeric_address() {
  if (!numeric_address_) {
    const Address named = url().nfs_address();
    const auto found = co_await net::resolve(run_.loop, named, resolve_for_, run_.cancel);
    if (!found)
      co_return Failure{Error::of_call({"find", named.host},
                                       rpc::CallError::transport(found.error(), to_string(named)))};
    numeric_address_ = found->front().address();
  }
  co_return *numeric_address_;
}

Task<Outcome<nfs::client::Node>> Remote::walk(std::string path, nfs::client::Links links) {
  const bool slash = path.ends_with('/');
  Outcome<nfs::client::Node> node =
      co_await files().walk(path, slash ? nfs::client::Links::Follow : links);
  if (slash && node && node->attributes.type != nfs::client::FileType::Directory)
    co_return Failure{Error::of_status({"find", path}, Status::NotDirectory)};
  co_return node;
}

Task<Outcome<nfs::client::Node>> Remote::entry(nfs::client::Handle directory, Place place) {
  Outcome<nfs::client::Node> node = co_await files().lookup(directory, place.name);
  if (place.slash && node && node->attributes.type != nfs::client::FileType::Directory)
    co_return Failure{Error::of_status({"find", place.name + "/"}, Status::NotDirectory)};
  co_return node;
}

Task<Outcome<std::unique_ptr<Remote>>> Remote::open(Run& run, std::string url,
                                                    const RemoteOptions& options) {
  const ConnectRetry retry(run.loop.now(), begin_patience(options).all_tries,
                           std::chrono::minutes(options.retry));
  for (;;) {
    Outcome<std::unique_ptr<Remote>> remote = co_await open_once(run, url, options);
    const bool not_ready = !remote && options.hard && remote.error().is(Status::Delay);
    if (!not_ready && (remote || !retry.goes_on(remote.error(), run.loop.now())))
      co_return std::move(remote);
    co_await pause(run.loop, ConnectRetry::kPause, run.cancel);
    if (run.cancel.cancelled()) co_return std::move(remote);
  }
}

namespace {

// Whether what keeps version 3 from being used need not keep others from it: those have no MOUNT,
// which may want a reserved port, or not know a path of version 4's name space.
// A port that is silent would be so for them, too.
bool permits_others(const Error& why, const Url& url, const RemoteOptions& options) {
  if (why.kind == Error::Kind::Mount) return options.others_if_refused;
  if (why.kind != Error::Kind::Call) return false;
  const Reason reason = why.call.reason;
  const bool silent = reason == Reason::TimedOut || reason == Reason::ConnectTimedOut;
  return !silent || !why.call.where.ends_with(" " + to_string(url.nfs_address()));
}

}  // namespace

Outcome<Ok> Remote::start_loops(const Url& url, const RemoteOptions& options) {
  if (options.loops <= 1) return Ok{};
  // The choice of the first connection is told.
  const auto make = [&](net::EpollLoop& loop) {
    return nfs_connector(loop, url, options, Duration::zero(), false);
  };
  auto started = FurtherLoops::start(run_.loop, options.loops - 1, make);
  if (!started)
    return Failure{
        Error::of_local(fmt::format("cannot start loops: {}", info(started.error()).text))};
  further_loops_ = *std::move(started);
  return Ok{};
}

Task<Outcome<std::unique_ptr<Remote>>> Remote::open_once(Run& run, std::string url,
                                                         const RemoteOptions& options) {
  const Outcome<Url> parsed = Url::parse(url);
  if (!parsed) co_return Failure{parsed.error()};
  Outcome<rpc::Credentials> credentials = nfs_credentials(*parsed);
  if (!credentials) co_return Failure{credentials.error()};
  Outcome<std::optional<rpc::Credentials>> machine = machine_credentials(*parsed);
  if (!machine) co_return Failure{machine.error()};
  std::unique_ptr<Remote> remote(new Remote(run, options));
  remote->nfs_connector_ =
      nfs_connector(run.loop, *parsed, options, nfs::client::probe_limit(connect_timeout(options)));
  if (const Outcome<Ok> started = remote->start_loops(*parsed, options); !started)
    co_return Failure{started.error()};
  remote->mount_connector_ = tcp_connector(run.loop, options);
  nfs::client::FileSystemOptions files = file_system_options(*parsed, options);
  files.calls.credentials = *std::move(credentials);
  files.calls.machine_credentials = *std::move(machine);
  files.calls.cancel = run.cancel;
  if (parsed->callback)
    remote->callbacks_ = endpoint::make_callback_listener(run.loop, *parsed->callback);
  nfs::client::Connectors connectors{*remote->nfs_connector_, *remote->mount_connector_,
                                     remote->callbacks_.get()};
  if (remote->further_loops_) connectors.of_other_loops = remote->further_loops_->connectors();
  nfs::client::FileSystemOptions beginning = files;
  beginning.calls.timeout = begin_patience(options).call;
  Url first = *parsed;
  const bool chosen = options.version_3_first && !parsed->version;
  if (chosen) first.version = 3;
  if (options.connections) first.connections = *options.connections;
  first.connections = std::max(first.connections, options.loops);
  Outcome<std::unique_ptr<nfs::client::Session>> session =
      co_await nfs::client::Session::open(connectors, first, beginning);
  if (!session && chosen && permits_others(session.error(), *parsed, options) &&
      !run.cancel.cancelled())
    session = co_await nfs::client::Session::open(connectors, *parsed, beginning);
  if (!session) co_return Failure{session.error()};
  remote->session_ = *std::move(session);
  std::exception_ptr exception;
  try {
    remote->closing_ = remote->session_->close();
    remote->share(files);
  } catch (...) {
    exception = std::current_exception();
  }
  if (exception) co_await remote->close();
  if (exception) std::rethrow_exception(exception);
  co_return std::move(remote);
}

Task<Outcome<std::vector<nfs::client::ListedExport>>> exports_of(Run& run, Url url,
                                                                 const RemoteOptions& options) {
  nfs::client::ProtocolOptions calls = file_system_options(url, options).calls;
  calls.cancel = run.cancel;
  const std::unique_ptr<rpc::Connector> connector = tcp_connector(run.loop, options);
  const Outcome<Address> at = co_await nfs::client::find_mount(*connector, url, calls);
  if (!at) co_return Failure{at.error()};
  rpc::CallOptions call;
  call.timeout = calls.timeout;
  call.cancel = run.cancel;
  const rpc::Credentials user = user_credentials(url);
  const auto list = [&](rpc::Channel& channel) {
    return nfs::client::list_exports(channel, user, call);
  };
  Task<rpc::ConnectedChannel> connecting = connect_patiently(run, *connector, *at, options);
  auto listed = co_await rpc::with_channel(std::move(connecting), list);
  if (!listed)
    co_return Failure{Error::of_call({"connect to the MOUNT service", {}}, listed.error())};
  co_return *std::move(listed);
}

Place place_of(std::string path) {
  const bool behind = path.ends_with('/');
  while (path.ends_with('/')) path.pop_back();
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {"", std::move(path), behind};
  return {path.substr(0, slash), path.substr(slash + 1), behind};
}

}  // namespace stag::cli
