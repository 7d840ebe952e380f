#include "cli/serve/copy_sources.h"

#include "base/reason.h"
#include "endpoint/connector.h"
#include "nfs/client/session/session.h"
#include "nfs/client/v4/copy_notice.h"
#include "nfs/proto/nfs4.h"

namespace stag::cli {
namespace {

namespace v4 = nfs::v4;
using nfs::client::Error;
using nfs::client::Status;
using nfs::nfs4::SourceArgs;
using nfs::nfs4::SourceFile;
using nfs::nfs4::SourcePlace;

constexpr Duration kConnectTimeout = std::chrono::seconds(5);
// Before a copy is given up (nfs::nfs4::kSourcePatience), so that it is known why.
constexpr Duration kCallTimeout = std::chrono::seconds(15);

endpoint::ConnectorOptions connector_options(endpoint::Transport transport) {
  endpoint::ConnectorOptions options;
  options.transport = transport;
  options.tcp.connect_timeout = options.rdma.connect_timeout = kConnectTimeout;
  options.rdma.reconnect_for = kCallTimeout;
  return options;
}

v4::nfsstat4 status_of(Status status) {
  switch (status) {
    case Status::NotSupported:
      return v4::NFS4ERR_PARTNER_NOTSUPP;
    case Status::NotOwner:
    case Status::Access:
    case Status::WrongSecurity:
    case Status::StateLost:
    case Status::Unknown:  // of READ, and that is of its stateid
      return v4::NFS4ERR_PARTNER_NO_AUTH;
    case Status::Stale:
    case Status::BadHandle:
      return v4::NFS4ERR_STALE;
    case Status::Invalid:
      return v4::NFS4ERR_INVAL;
    case Status::IsDirectory:
      return v4::NFS4ERR_WRONG_TYPE;
    case Status::Io:
      return v4::NFS4ERR_IO;
    default:
      return v4::NFS4ERR_OFFLOAD_DENIED;
  }
}

// RFC 7862 11.1.2: OFFLOAD_DENIED is the one after which every client copies by other means.
v4::nfsstat4 status_of(const Error& error) {
  if (error.kind == Error::Kind::Nfs) return status_of(error.status);
  if (error.kind != Error::Kind::Call || error.call.kind != rpc::CallError::Kind::Answered)
    return v4::NFS4ERR_OFFLOAD_DENIED;
  return error.call.status.reply == oncrpc::ReplyStat::MSG_DENIED ? v4::NFS4ERR_PARTNER_NO_AUTH
                                                                  : v4::NFS4ERR_PARTNER_NOTSUPP;
}

// The caller that cancels it knows why.
Failure<v4::nfsstat4> failed(const Address& at, const Error& error) {
  if (!error.cancelled()) trace(Reason::Nfs4CopySourceFailed, to_string(at), error.sentence);
  return Failure{status_of(error)};
}

class RemoteFile final : public SourceFile {
 public:
  RemoteFile(const SourcePlace& place, const SourceArgs& args)
      : at_(place.at), source_(*nfs::client::Handle::from(args.file.bytes())) {
    source_.notice = nfs::client::nfs4::to_copy_notice(args.stateid);
  }

  void begin(std::unique_ptr<nfs::client::Session> session) { session_ = std::move(session); }
  Task<Answer<std::uint64_t>> size() override {
    const auto found = co_await session_->files().getattr(source_.file);
    if (!found) co_return failed(at_, found.error());
    if (found->type != nfs::client::FileType::Regular) co_return Failure{v4::NFS4ERR_WRONG_TYPE};
    co_return found->size;
  }
  std::uint32_t largest_read() const override { return session_->files().sizes().read; }
  Task<Answer<Part>> read(std::uint64_t offset, MutableBytes to) override {
    const auto part = co_await session_->files().read_notified(source_, offset, to);
    if (!part) co_return failed(at_, part.error());
    co_return Part{part->count, part->eof};
  }
  Task<void> close() override { return session_->close(); }

 private:
  const Address at_;
  nfs::client::CopySource source_;
  std::unique_ptr<nfs::client::Session> session_;
};

nfs::client::Url url_of(const SourcePlace& place) {
  nfs::client::Url url;
  url.host = place.at.host;
  url.port = place.at.port;
  url.protocol = place.rdma ? nfs::client::Url::Protocol::Rdma : nfs::client::Url::Protocol::Tcp;
  url.version = 4;
  return url;
}

}  // namespace

CopySources::CopySources(net::EpollLoop& loop, const CopyFromHosts& hosts, Fabric fabric)
    : hosts_(hosts),
      tcp_(endpoint::make_connector(loop, connector_options(endpoint::Transport::Tcp))),
      rdma_([&] {
        endpoint::ConnectorOptions options = connector_options(endpoint::Transport::Rdma);
        if (fabric.devices) options.fabric = endpoint::FabricKind::Auto;
        options.verbs.device = std::move(fabric.device);
        return endpoint::make_connector(loop, options);
      }()) {}

Task<SourceFile::Answer<std::unique_ptr<SourceFile>>> CopySources::open(SourcePlace place,
                                                                        SourceArgs args,
                                                                        CancelToken cancel) {
  auto file = std::make_unique<RemoteFile>(place, args);
  nfs::client::FileSystemOptions options;
  options.calls.credentials =
      rpc::Credentials::sys("stag serve", args.user.uid, args.user.gid, args.user.groups);
  options.calls.version = 4;
  options.calls.cancel = cancel;
  options.calls.timeout = options.calls.jukebox_for = kCallTimeout;
  rpc::Connector& connector = place.rdma ? *rdma_ : *tcp_;
  auto session = co_await nfs::client::Session::open({connector, *tcp_}, url_of(place), options);
  if (!session) co_return failed(place.at, session.error());
  file->begin(*std::move(session));
  co_return std::unique_ptr<SourceFile>(std::move(file));
}

}  // namespace stag::cli
