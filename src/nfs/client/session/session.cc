#include "nfs/client/session/session.h"

#include <algorithm>
#include <utility>

#include "nfs/client/session/endpoint_discovery.h"
#include "nfs/client/session/mount.h"
#include "nfs/client/session/name_space.h"
#include "nfs/client/v4/callback_service.h"
#include "nfs/client/v4/callback_service_v40.h"
#include "nfs/client/v4/nfs4.h"
#include "nfs/proto/mount3.h"
#include "nfs/proto/nfs3.h"
#include "rpc/client_security.h"

namespace stag::nfs::client {
namespace {

// UMNT is a courtesy; a Session does not wait for it longer than this.
constexpr Duration kUnmountTimeout = std::chrono::seconds(2);
constexpr Duration kProbeTimeout = std::chrono::seconds(2);

rpc::CallOptions call_options(const ProtocolOptions& calls) {
  rpc::CallOptions options;
  options.timeout = calls.timeout;
  options.cancel = calls.cancel;
  return options;
}

const rpc::Credentials& mount_credentials(const FileSystemOptions& options) {
  return options.mount_credentials ? *options.mount_credentials : options.calls.credentials;
}

FileSystemOptions as_told(FileSystemOptions options, const Url& url) {
  options.calls.version = url.version;
  options.calls.minor = url.minor;
  options.sizes.read = url.read_size.value_or(options.sizes.read);
  options.sizes.write = url.write_size.value_or(options.sizes.write);
  return options;
}

// Whether anything there answers a Call over TCP, be it that it serves no such program.
Task<bool> speaks_tcp(rpc::Connector& tcp, Address at, FileSystemOptions files) {
  const ProtocolOptions& calls = files.calls;
  rpc::CallResult<std::unique_ptr<rpc::Channel>> channel =
      co_await tcp.connect(std::move(at), calls.cancel);
  if (!channel) co_return false;
  rpc::CallOptions options = call_options(calls);
  options.timeout = kProbeTimeout;
  rpc::Client client(**channel, {}, mount_credentials(files));
  const rpc::CallResult<Ok> answer = co_await client.ping(v3::NFS_PROGRAM, calls.version, options);
  co_await (*channel)->close();
  co_return answer.ok() || answer.error().kind != rpc::CallError::Kind::Transport;
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

}  // namespace

Session::Session(Url url, const FileSystemOptions& options)
    : url_(std::move(url)), options_(as_told(options, url_)) {}

Session::~Session() = default;

Task<Outcome<std::unique_ptr<Session>>> Session::open(Connectors connectors, Url url,
                                                      FileSystemOptions options) {
  std::unique_ptr<Session> session(new Session(std::move(url), options));
  Outcome<Ok> ready = co_await session->connect(connectors);
  if (ready && session->url_.version == 4) ready = co_await session->begin_version_4();
  if (ready && session->url_.version != 4) ready = co_await session->mount();
  if (ready) ready = co_await session->files_->adopt_sizes();
  if (ready) co_return std::move(session);
  co_await session->close();
  co_return Failure{ready.error()};
}

Task<Outcome<std::unique_ptr<Session>>> Session::open(Connectors connectors, Url url) {
  return open(connectors, std::move(url), FileSystemOptions());
}

Task<Outcome<Ok>> Session::connect(Connectors connectors) {
  const CancelToken cancel = options_.calls.cancel;
  const Outcome<Address> nfs_at = co_await find_nfs(connectors.mount, url_, options_.calls);
  if (!nfs_at) co_return Failure{nfs_at.error()};
  rpc::CallResult<std::unique_ptr<rpc::Channel>> nfs =
      co_await connectors.nfs.connect(*nfs_at, cancel);
  if (!nfs) {
    const Error why = co_await why_not(connectors, *nfs_at, nfs.error(), options_);
    co_return Failure{why};
  }
  nfs_ = std::move(*nfs);
  if (url_.version == 4) {
    if (!options_.calls.delegations) co_return Ok{};
    const Outcome<Ok> listening = listen(connectors.callbacks);
    if (!listening) co_return Failure{listening.error()};
    callbacks_ = std::make_unique<nfs4::CallbackService>();
    // It stands before the session names it (RFC 8881 2.10.3.1).
    if (!url_.callbacks_by_tcp) nfs_->serve_reverse(callbacks_->service());
    if (url_.callbacks_by_tcp) co_return co_await connect_back_channel(connectors.mount);
    co_return Ok{};
  }
  const Outcome<bool> shared = co_await shares_connection();
  if (!shared) co_return Failure{shared.error()};
  if (*shared) co_return Ok{};
  const Outcome<Address> mount_at = co_await find_mount(connectors.mount, url_, options_.calls);
  if (!mount_at) co_return Failure{mount_at.error()};
  rpc::CallResult<std::unique_ptr<rpc::Channel>> mount =
      co_await connectors.mount.connect(*mount_at, cancel);
  if (!mount)
    co_return Failure{
        Error::of_call({"connect to the MOUNT service (mountport= in the URL names its port)", {}},
                       mount.error())};
  mount_ = std::move(*mount);
  co_return Ok{};
}

// Where the server of version 4.0 connects to (RFC 8167 3.1).
Outcome<Ok> Session::listen(rpc::Listener* listener) {
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
Task<Outcome<Ok>> Session::connect_back_channel(rpc::Connector& tcp) {
  auto back = co_await tcp.connect(url_.mount_address(), options_.calls.cancel);
  if (!back)
    co_return Failure{Error::of_call(
        {"connect the back channel by TCP (mountport= in the URL names its port)", {}},
        back.error())};
  back_ = *std::move(back);
  back_->serve_reverse(callbacks_->service());
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

Task<Outcome<Ok>> Session::mount() {
  const Outcome<MountPoint> point =
      co_await client::mount(mount_channel(), url_.path, mount_credentials(options_),
                             call_options(options_.calls), url_.version);
  if (!point) co_return Failure{point.error()};
  path_ = point->rest;
  files_ = std::make_unique<FileSystem>(*nfs_, point->root, point->root_path, options_);
  co_return Ok{};
}

Task<Outcome<Ok>> Session::begin_version_4() {
  Outcome<std::shared_ptr<nfs4::Nfs4>> protocol = co_await nfs4::Nfs4::connect(
      *nfs_, options_.calls, {callbacks_.get(), callbacks_v40_.get(), back_.get()});
  if (!protocol) co_return Failure{protocol.error()};
  protocol_ = *protocol;
  const Outcome<Handle> root = co_await (*protocol)->root({"find the root", {}});
  if (!root) co_return Failure{root.error()};
  const Outcome<MountPoint> point = co_await find_file_system(*protocol_, *root, url_.path);
  if (!point) co_return Failure{point.error()};
  path_ = point->rest;
  files_ = std::make_unique<FileSystem>(protocol_, point->root, point->root_path, options_);
  co_return Ok{};
}

Task<void> Session::close() {
  if (protocol_) co_await protocol_->close();
  if (files_ && !protocol_ && !options_.calls.cancel.cancelled()) {
    rpc::CallOptions options = call_options(options_.calls);
    options.timeout = kUnmountTimeout;
    // A failure does not matter: the list of mounts is informational.
    static_cast<void>(co_await unmount(mount_channel(), files_->root_path(),
                                       mount_credentials(options_), options, url_.version));
  }
  rpc::ClientSecurity* const security = options_.calls.credentials.security();
  if (nfs_ && security != nullptr) co_await security->end(*nfs_);
  if (listener_ != nullptr) co_await listener_->close();
  if (back_) co_await back_->close();
  if (mount_) co_await mount_->close();
  if (nfs_) co_await nfs_->close();
}

}  // namespace stag::nfs::client
