#include "nfs/client/session/session.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "nfs/client/session/endpoint_discovery.h"
#include "nfs/client/session/mount.h"
#include "nfs/client/session/name_space.h"
#include "nfs/client/session/spread_channel.h"
#include "nfs/client/v4/callback_service.h"
#include "nfs/client/v4/callback_service_v40.h"
#include "nfs/client/v4/nfs4.h"
#include "nfs/proto/mount3.h"
#include "nfs/proto/nfs3.h"
#include "rpc/client_security.h"
#include "rpc/with_channel.h"

namespace stag::nfs::client {
namespace {

oncrpc::AuthFlavor flavor_of(Url::Security security) {
  switch (security) {
    case Url::Security::Sys:
      break;
    case Url::Security::Krb5:
      return oncrpc::AuthFlavor::KRB5;
    case Url::Security::Krb5i:
      return oncrpc::AuthFlavor::KRB5I;
    case Url::Security::Krb5p:
      return oncrpc::AuthFlavor::KRB5P;
  }
  return oncrpc::AuthFlavor::AUTH_SYS;
}

// Others make the credentials, and calls that are protected less than the URL says work as well.
Outcome<Ok> check_user(const Url& url, const rpc::Credentials& credentials) {
  const rpc::ClientSecurity* const security = credentials.security();
  if (security != nullptr && (url.uid || url.gid))
    return Failure{Error::of_url("in the URL, uid and gid: Kerberos says who the user is")};
  if (url.security == Url::Security::Sys) return Ok{};
  if (security != nullptr && security->flavor() == flavor_of(url.security)) return Ok{};
  return Failure{Error::of_url("in the URL, sec: the program's credentials are of another kind")};
}

// UMNT is a courtesy; a Session does not wait for it longer than this.
constexpr Duration kUnmountTimeout = std::chrono::seconds(2);
// The user has not asked for the connection: the Session does without it where there is no answer.
constexpr Duration kBackChannelTimeout = std::chrono::seconds(5);

rpc::CallOptions call_options(const ProtocolOptions& calls) {
  rpc::CallOptions options;
  options.timeout = calls.timeout;
  options.cancel = calls.cancel;
  return options;
}

const rpc::Credentials& mount_credentials(const FileSystemOptions& options) {
  return options.mount_credentials ? *options.mount_credentials : options.calls.credentials;
}

// The server has no version 4, or none of its minor versions that this client speaks.
bool means_no_version_4(const Error& error) {
  if (error.is(Status::NotSupported)) return true;
  if (error.kind != Error::Kind::Call || error.call.kind != rpc::CallError::Kind::Answered)
    return false;
  const auto& status = error.call.status;
  return status.accept == oncrpc::AcceptStat::PROG_MISMATCH ||
         status.accept == oncrpc::AcceptStat::PROG_UNAVAIL;
}

// They claim a user, and prove nothing.
bool claim_a_user(const rpc::Credentials& credentials) {
  return credentials.security() == nullptr &&
         credentials.credential().flavor == oncrpc::AuthFlavor::AUTH_SYS;
}

bool lists(const MountPoint& point, oncrpc::AuthFlavor flavor) {
  return std::ranges::count(point.flavors, static_cast<std::int32_t>(flavor)) != 0;
}

FileSystemOptions as_told(FileSystemOptions options, const Url& url) {
  options.calls.version = url.version.value_or(options.calls.version);
  options.calls.minor = url.minor;
  options.sizes.read = url.read_size.value_or(options.sizes.read);
  options.sizes.write = url.write_size.value_or(options.sizes.write);
  return options;
}

Task<bool> answers_nfs(rpc::Channel& channel, const FileSystemOptions& files) {
  rpc::CallOptions options = call_options(files.calls);
  options.timeout = probe_limit(files.calls.timeout);
  rpc::Client client(channel, {}, mount_credentials(files));
  const rpc::CallResult<Ok> answer =
      co_await client.ping(v3::NFS_PROGRAM, files.calls.version, options);
  co_return answer.ok() || answer.error().kind != rpc::CallError::Kind::Transport;
}

// Whether anything there answers a Call over TCP, be it that it serves no such program.
Task<bool> speaks_tcp(rpc::Connector& tcp, Address at, FileSystemOptions files) {
  const ProtocolOptions& calls = files.calls;
  const auto ask = [&files](rpc::Channel& channel) { return answers_nfs(channel, files); };
  Task<rpc::ConnectedChannel> connecting = tcp.connect(std::move(at), calls.cancel);
  const rpc::CallResult<bool> answered = co_await rpc::with_channel(std::move(connecting), ask);
  co_return answered.ok() && *answered;
}

// Tries NFS over TCP on a port that closes RPC-over-RDMA connections, or never answers them, to
// explain the error.
Task<Error> why_not(Connectors connectors, Address nfs, rpc::CallError error,
                    const FileSystemOptions& options) {
  const OperationContext context{"connect to the NFS service", {}};
  Error known = Error::of_call(context, error);
  bool is_tcp = false;
  if (error.reason == Reason::MpaUnanswered || error.reason == Reason::TimedOut)
    is_tcp = co_await speaks_tcp(connectors.mount, nfs, options);
  if (!is_tcp) co_return known;
  known.sentence = "cannot connect to the NFS service: " + to_string(nfs) +
                   " speaks RPC over TCP, not RPC-over-RDMA; add proto=tcp to "
                   "the URL, or name the "
                   "port of RPC-over-RDMA (20049 as a rule)";
  co_return known;
}

// Where there is no memory for closing it begins again. `protocol`: as it is when this begins.
Task<void> ended(const std::shared_ptr<nfs4::Nfs4>& protocol) {
  for (bool closed = false; !closed;) {
    try {
      co_await protocol->close();
      closed = true;
    } catch (const std::bad_alloc&) {
      rpc::wait_for_memory();
    }
  }
}

// What calls go by: a connection that is the only one takes no turns.
rpc::Channel& by(SpreadChannel& all, const Url& url) {
  return url.connections > 1 ? static_cast<rpc::Channel&>(all) : all.first();
}

}  // namespace

Duration probe_limit(Duration limit) {
  constexpr Duration kMost = std::chrono::seconds(2);
  return limit > Duration::zero() ? std::min(kMost, limit / 4) : kMost;
}

Session::Session(Url url, const FileSystemOptions& options)
    : url_(std::move(url)), options_(as_told(options, url_)) {}

Session::~Session() = default;

Task<Outcome<std::unique_ptr<Session>>> Session::open(Connectors connectors, Url url,
                                                      FileSystemOptions options) {
  if (const Outcome<Ok> same = check_user(url, options.calls.credentials); !same)
    co_return Failure{same.error()};
  std::unique_ptr<Session> session(new Session(std::move(url), options));
  // Made before it is needed, when there may be no memory for it.
  Task<void> closing = session->close();
  Outcome<Ok> ready = Ok{};
  std::exception_ptr failure;
  try {
    ready = co_await session->begin(connectors);
    if (ready) ready = co_await session->files_->adopt_sizes();
    if (ready) co_await session->add_connections(connectors);
  } catch (...) {
    failure = std::current_exception();
  }
  if (ready && !failure) co_return std::move(session);
  co_await std::move(closing);
  if (failure) std::rethrow_exception(failure);
  co_return Failure{ready.error()};
}

Task<Outcome<std::unique_ptr<Session>>> Session::open(Connectors connectors, Url url) {
  return open(connectors, std::move(url), FileSystemOptions());
}

Task<Outcome<Ok>> Session::begin(Connectors connectors) {
  const bool named = url_.version.has_value();
  if (url_.version.value_or(4) != 4) co_return co_await begin_mounted(connectors);
  url_.version = options_.calls.version = 4;
  Outcome<Ok> begun = co_await connect(connectors);
  if (begun) begun = co_await begin_version_4(callbacks_.get());
  if (begun) begun = co_await call_back_by_tcp(connectors.mount);
  if (named) co_return begun;
  if (begun) co_return co_await path_by_mount(connectors);
  const bool unregistered = url_.port_from_rpcbind && !nfs_;
  if (!unregistered && !means_no_version_4(begun.error())) co_return begun;
  // rpcbind may know version 3 by another port.
  if (nfs_ && url_.port_from_rpcbind) {
    co_await nfs_->close();
    nfs_.reset();
  }
  co_return co_await begin_mounted(connectors);
}

// Of version 2 or 3.
Task<Outcome<Ok>> Session::begin_mounted(Connectors connectors) {
  if (url_.version.value_or(4) == 4) url_.version = 3;
  url_.minor.reset();
  options_.calls.version = *url_.version;
  Outcome<Ok> begun = Ok{};
  if (!nfs_) begun = co_await connect(connectors);
  if (begun) begun = co_await connect_mount(connectors);
  if (begun) begun = co_await mount();
  co_return begun;
}

// A server may export paths that its name space of version 4 does not have: Linux does, below an
// export with fsid=0. Where MOUNT does not answer either, version 4 it is.
Task<Outcome<Ok>> Session::path_by_mount(Connectors connectors) {
  const Outcome<bool> known = co_await knows_path();
  if (!known) co_return Failure{known.error()};
  if (*known || url_.port_from_rpcbind) co_return Ok{};
  const std::shared_ptr<nfs4::Nfs4> protocol = std::exchange(protocol_, nullptr);
  std::unique_ptr<FileSystem> files = std::move(files_);
  std::string path = path_;
  const std::optional<std::uint32_t> minor = url_.minor;
  Outcome<Ok> mounted = Ok{};
  std::exception_ptr failure;
  try {
    mounted = co_await begin_mounted(connectors);
  } catch (...) {
    failure = std::current_exception();
  }
  if (!failure && (mounted || mounted.error().kind == Error::Kind::Mount)) {
    co_await protocol->close();
    if (back_) co_await back_->close();
    back_.reset();
    co_return mounted;
  }
  if (mount_) co_await mount_->close();
  mount_.reset();
  url_.version = options_.calls.version = 4;
  url_.minor = minor;
  protocol_ = protocol;
  files_ = std::move(files);
  path_ = std::move(path);
  if (failure) std::rethrow_exception(failure);
  co_return Ok{};
}

// Whether the path's first name is there, and open to this client, in version 4.
Task<Outcome<bool>> Session::knows_path() {
  if (files_->root_path() != "/" || path_.empty()) co_return true;
  const Outcome<Node> first =
      co_await files_->lookup(files_->root(), path_.substr(0, path_.find('/')));
  if (!first && first.error().kind != Error::Kind::Nfs) co_return Failure{first.error()};
  co_return first || !(first.error().is(Status::NoEntry) || first.error().is(Status::Access));
}

Task<Outcome<Ok>> Session::connect(Connectors connectors) {
  const Outcome<Address> nfs_at = co_await find_nfs(connectors.mount, url_, options_.calls);
  if (!nfs_at) co_return Failure{nfs_at.error()};
  // What there must be memory for before there is a connection.
  auto all = std::make_unique<SpreadChannel>(url_.connections);
  rpc::CallResult<std::unique_ptr<rpc::Channel>> nfs =
      co_await connectors.nfs.connect(*nfs_at, options_.calls.cancel);
  if (!nfs) {
    const Error why = co_await why_not(connectors, *nfs_at, nfs.error(), options_);
    co_return Failure{why};
  }
  all->add(std::move(*nfs));
  nfs_ = std::move(all);
  nfs_at_ = *nfs_at;
  const bool delegates = options_.calls.delegations;
  if (*url_.version != 4 || !(delegates || options_.calls.offloads)) co_return Ok{};
  if (delegates) {
    const Outcome<Ok> listening = listen(connectors.callbacks);
    if (!listening) co_return Failure{listening.error()};
  }
  callbacks_ = std::make_unique<nfs4::CallbackService>();
  // It stands before the session names it (RFC 8881 2.10.3.1).
  if (!url_.callbacks_by_tcp) nfs_->serve_reverse(callbacks_->service());
  if (url_.callbacks_by_tcp)
    co_return co_await connect_back_channel(connectors.mount, options_.calls.cancel, *callbacks_);
  co_return Ok{};
}

// A context of Kerberos belongs to one loop, and the server calls back by connections of this one.
Task<void> Session::add_connections(Connectors connectors) {
  const bool secured = options_.calls.credentials.security() != nullptr;
  const auto& others = connectors.of_other_loops;
  const bool elsewhere = !others.empty() && !secured;
  while (nfs_->size() < url_.connections) {
    rpc::Connector& connector =
        elsewhere ? *others[(nfs_->size() - 1) % others.size()] : connectors.nfs;
    rpc::CallResult<std::unique_ptr<rpc::Channel>> more =
        co_await connector.connect(*nfs_at_, options_.calls.cancel);
    if (!more) co_return;
    joining_ = std::move(*more);
    const bool called_back = callbacks_ && !url_.callbacks_by_tcp && !elsewhere;
    if (called_back) joining_->serve_reverse(callbacks_->service());
    bool joins = true;
    if (protocol_) joins = co_await protocol_->joins(nfs_->first(), *joining_, !elsewhere);
    if (!joins) {
      co_await joining_->close();
      joining_.reset();
      co_return;
    }
    nfs_->add(std::move(joining_), elsewhere);
  }
}

Task<Outcome<Ok>> Session::connect_mount(Connectors connectors) {
  const Outcome<bool> shared = co_await shares_connection();
  if (!shared) co_return Failure{shared.error()};
  if (*shared) co_return Ok{};
  const Outcome<Address> mount_at = co_await find_mount(connectors.mount, url_, options_.calls);
  if (!mount_at) co_return Failure{mount_at.error()};
  rpc::CallResult<std::unique_ptr<rpc::Channel>> mount =
      co_await connectors.mount.connect(*mount_at, options_.calls.cancel);
  if (!mount)
    co_return Failure{
        Error::of_call({"connect to the MOUNT service (mountport= in the URL names its port)", {}},
                       mount.error())};
  mount_ = std::move(*mount);
  co_return Ok{};
}

// Where the server of version 4.0 connects to (RFC 8167 3.1).
Outcome<Ok> Session::listen(rpc::CallbackListener* listener) {
  if (listener == nullptr || url_.minor.value_or(0) > 0) return Ok{};
  auto service = std::make_unique<nfs4::CallbackServiceV40>();
  const Result<Address, Reason> at = listener->listen(service->service());
  if (!at)
    return Failure{Error::of_call({"listen for callbacks (callback= in the URL)", {}},
                                  rpc::CallError::transport(at.error(), "tcp"))};
  listener_ = listener;
  service->listens_at(*at);
  callbacks_v40_ = std::move(service);
  return Ok{};
}

// RFC 8167 3.2: a connection that has a reverse direction, for that alone.
Task<Outcome<Ok>> Session::connect_back_channel(rpc::Connector& tcp, CancelToken cancel,
                                                nfs4::CallbackService& callbacks) {
  auto back = co_await tcp.connect(url_.mount_address(), cancel);
  if (!back)
    co_return Failure{Error::of_call(
        {"connect the back channel by TCP (mountport= in the URL names its port)", {}},
        back.error())};
  back_ = *std::move(back);
  back_->serve_reverse(callbacks.service());
  co_return Ok{};
}

// RFC 8167 3.2: where the server does not use the reverse direction of the connection. There is to
// be another session for it, as the server was told that callbacks come by that one. A server that
// does not listen on TCP, or makes no other session, delegates nothing: nobody asked for it.
Task<Outcome<Ok>> Session::call_back_by_tcp(rpc::Connector& tcp) {
  const bool on_rdma = url_.protocol == Url::Protocol::Rdma && !url_.callbacks_by_tcp;
  const bool wanted = on_rdma && options_.calls.delegations && protocol_->minor() > 0;
  if (!wanted || protocol_->called_back()) co_return Ok{};
  CancelSource over;
  const CancelCallback cancelled(options_.calls.cancel, [&over] { over.cancel(); });
  const Timer limit = tcp.loop().after(kBackChannelTimeout, [&over] { over.cancel(); });
  // The session that works may still be given a back channel, and go on with that: each has
  // callbacks of its own.
  callbacks_by_tcp_ = std::make_unique<nfs4::CallbackService>();
  const Outcome<Ok> connected = co_await connect_back_channel(tcp, over, *callbacks_by_tcp_);
  if (!connected) co_return Ok{};
  std::shared_ptr<nfs4::Nfs4> other = protocol_;
  // Made before it is needed, when there may be no memory for it.
  Task<void> closing = ended(other);
  const std::optional<std::uint32_t> minor = url_.minor;
  Outcome<Ok> begun = Ok{};
  std::exception_ptr failure;
  try {
    begun = co_await begin_version_4(callbacks_by_tcp_.get());
  } catch (...) {
    failure = std::current_exception();
  }
  // The session that works ends when there is another one.
  const bool replaced = begun && !failure;
  if (!replaced) std::swap(other, protocol_);
  if (other != protocol_) co_await std::move(closing);
  if (failure) std::rethrow_exception(failure);
  url_.callbacks_by_tcp = replaced;
  if (replaced) co_return Ok{};
  url_.minor = minor;
  co_await back_->close();
  back_.reset();
  co_return Ok{};
}

// One TCP port may carry both programs; where the URL does not name MOUNT's, a NULL call to it
// finds out.
Task<Outcome<bool>> Session::shares_connection() {
  if (url_.protocol != Url::Protocol::Tcp) co_return false;
  if (url_.mount_port) co_return url_.mount_address() == url_.nfs_address();
  rpc::Client client(*nfs_, {}, mount_credentials(options_));
  const rpc::CallResult<Ok> there = co_await client.ping(
      mount3::MOUNT_PROGRAM, url_.version == 2 ? 1 : 3, call_options(options_.calls));
  if (!there && there.error().reason == Reason::RpcUnanswered)
    co_return Failure{Error::of_call({"reach the NFS service", {}}, there.error())};
  co_return there.ok();
}

rpc::Channel& Session::mount_channel() {
  if (mount_) return *mount_;
  return *nfs_;
}

Task<Outcome<Ok>> Session::mount() {
  const Outcome<MountPoint> point =
      co_await client::mount(mount_channel(), url_.path, mount_credentials(options_),
                             call_options(options_.calls), *url_.version);
  if (!point) co_return Failure{point.error()};
  // The server serves the anonymous user there, whoever the client says it is.
  const bool listed = point->flavors.empty() || lists(*point, oncrpc::AuthFlavor::AUTH_SYS);
  if (!listed && claim_a_user(options_.calls.credentials)) {
    if (!lists(*point, oncrpc::AuthFlavor::AUTH_NONE))
      co_return Failure{Error::of_mount(point->root_path, Status::WrongSecurity)};
    options_.calls.credentials = {};
  }
  path_ = point->rest;
  files_ = std::make_unique<FileSystem>(by(*nfs_, url_), point->root, point->root_path, options_);
  co_return Ok{};
}

Task<Outcome<Ok>> Session::begin_version_4(nfs4::CallbackService* callbacks) {
  Outcome<std::shared_ptr<nfs4::Nfs4>> protocol = co_await nfs4::Nfs4::connect(
      by(*nfs_, url_), options_.calls, {callbacks, callbacks_v40_.get(), back_.get()});
  if (!protocol) co_return Failure{protocol.error()};
  protocol_ = *protocol;
  url_.minor = (*protocol)->minor();
  const Outcome<Found> root = co_await (*protocol)->root({"find the root", {}});
  if (!root) co_return Failure{root.error()};
  std::shared_ptr<Protocol> protocol_of_files = protocol_;
  Outcome<MountPoint> point = co_await find_file_system(*protocol_, *root, url_.path);
  if (!point) co_return Failure{point.error()};
  if (point->wrong_security && claim_a_user(options_.calls.credentials)) {
    // SECINFO would list the flavors (RFC 8881 2.6.3.1); this client has one other than Kerberos,
    // and the server says whether it will do.
    ProtocolOptions as_nobody = options_.calls;
    as_nobody.credentials = {};
    std::shared_ptr<Protocol> other = protocol_->with(as_nobody);
    const Outcome<MountPoint> beyond = co_await find_file_system(*other, *root, url_.path);
    if (beyond && !beyond->wrong_security) {
      point = beyond;
      protocol_of_files = std::move(other);
      options_.calls.credentials = {};
    }
  }
  path_ = point->rest;
  files_ = std::make_unique<FileSystem>(protocol_of_files, point->root, point->root_path, options_);
  co_return Ok{};
}

std::size_t Session::connections() const {
  return nfs_->size();
}

bool Session::called_back() const {
  return protocol_ && protocol_->called_back();
}

Task<void> Session::end() {
  if (protocol_) co_await protocol_->close();
  if (files_ && !protocol_ && !options_.calls.cancel.cancelled()) {
    rpc::CallOptions options = call_options(options_.calls);
    options.timeout = kUnmountTimeout;
    // A failure does not matter: the list of mounts is informational.
    static_cast<void>(co_await unmount(mount_channel(), files_->root_path(),
                                       mount_credentials(options_), options, *url_.version));
  }
  rpc::ClientSecurity* const security = options_.calls.credentials.security();
  if (nfs_ && security != nullptr) co_await security->end(*nfs_);
  if (listener_ != nullptr) co_await listener_->close();
  if (joining_) co_await joining_->close();
  if (back_) co_await back_->close();
  if (mount_) co_await mount_->close();
  if (nfs_) co_await nfs_->close();
}

// Where there is no memory for closing it begins again: nobody else has the Channels.
Task<void> Session::close() {
  for (bool closed = false; !closed;) {
    try {
      co_await end();
      closed = true;
    } catch (const std::bad_alloc&) {
      rpc::wait_for_memory();
    }
  }
}

}  // namespace stag::nfs::client
