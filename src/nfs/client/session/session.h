// nfs/client: files of an NFS server for programs, over any RPC transport.
//
//   Outcome<Url> url = Url::parse("nfs://server/export/dir?proto=rdma");
//   Outcome<std::unique_ptr<Session>> session =
//       co_await Session::open({rdma_connector, tcp_connector}, *url, options);
//   Outcome<Node> dir = co_await (*session)->files().walk((*session)->path());
//   ...
//   co_await (*session)->close();
//
// A Session corresponds to a mount of a kernel: it connects, gets the root handle by MOUNT and the
// transfer sizes by FSINFO, and owns the Channels. With version 4 there is no MOUNT: the Session
// makes a client ID and a session with the server (RFC 8881 2.4, 2.10), and the root of files() is
// that of the file system that the path lies in. Its FileSystem (file_system.h) reaches the
// files; there is no cache. The URL names the transport and the caller brings its Connector, so
// that this library depends on no transport.
//
// Thread: one Loop, that of the Connectors. Errors are values (protocol/error.h). When a connection
// is lost, the Channel connects again and repeats the calls in progress (RFC 1813 section 4.5 says
// what that means for procedures that must not run twice; servers of this project answer
// repetitions from a replay cache).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "nfs/client/file_system.h"
#include "nfs/client/session/url.h"
#include "rpc/callback_listener.h"
#include "rpc/channel.h"

namespace stag::nfs::client {

class SpreadChannel;
namespace nfs4 {
class CallbackService;
class CallbackServiceV40;
class Nfs4;
}  // namespace nfs4

// All outlive the Session.
struct Connectors {
  rpc::Connector& nfs;    // the transport that the URL names
  rpc::Connector& mount;  // TCP: for MOUNT, and rpcbind where it is asked
  // TCP: where a server of version 4.0 calls back; null: it cannot, and delegates nothing.
  rpc::CallbackListener* callbacks = nullptr;
  // Where more loops than that of `nfs` are to work: one Connector for each that hands its calls to
  // it (rpc::ProxyConnector), of the same transport and of the loop of `nfs`. The connections of
  // the URL beside the first one are made by these in turn.
  std::span<rpc::Connector* const> of_other_loops{};
};

// Whether a port that does not answer by RDMA speaks TCP is found out in so much of a time limit
// (zero: there is none); a Connector that leaves it has the user told within that limit.
Duration probe_limit(Duration limit);

class Session {
 public:
  // Connects and mounts. Where the URL names no version it is the highest that both sides speak, of
  // 4.2, 4.1, 4.0 and 3. Transfer sizes of the URL take precedence over those of `options`. To
  // cancel `options.calls.cancel` ends open() and every later operation. The caller makes the
  // credentials of `options` as the URL says (sec=, uid=, gid=). open() fails with Kind::Url when
  // the URL has sec=krb5, krb5i or krb5p and the credentials are not of that kind, and when they
  // are of Kerberos and the URL has uid= or gid=.
  static Task<Outcome<std::unique_ptr<Session>>> open(Connectors connectors, Url url,
                                                      FileSystemOptions options);
  // With the default options. (No default argument: g++ 12 destroys those of a co_await twice.)
  static Task<Outcome<std::unique_ptr<Session>>> open(Connectors connectors, Url url);
  // close() has ended before.
  ~Session();

  FileSystem& files() { return *files_; }
  // The rest of the URL's path below the root of files(), for walk(); empty: the root itself.
  const std::string& path() const { return path_; }
  // The URL of open(), with the version of NFS that both sides speak.
  const Url& url() const { return url_; }

  // Whether the server reaches this client by callbacks, as far as is known; where it does not, it
  // delegates nothing. False of versions 2 and 3.
  bool called_back() const;

  // What calls are spread over: as many as the URL asks for, or fewer where a further connection is
  // not to be had, or leads to another server.
  std::size_t connections() const;

  // Gives opens and locks back, unmounts and closes the connections. No operation is in progress.
  Task<void> close();

 private:
  Session(Url url, const FileSystemOptions& options);
  // Connects, and speaks the version of the URL, or the highest that both sides speak.
  Task<Outcome<Ok>> begin(Connectors connectors);
  Task<Outcome<Ok>> begin_mounted(Connectors connectors);
  // Goes back to version 3 where the server knows the path by MOUNT alone.
  Task<Outcome<Ok>> path_by_mount(Connectors connectors);
  Task<Outcome<bool>> knows_path();
  Task<Outcome<Ok>> connect(Connectors connectors);
  Task<Outcome<Ok>> connect_mount(Connectors connectors);
  // The connections of the URL beside the first one; without those that cannot be had.
  Task<void> add_connections(Connectors connectors);
  // Whether the NFS connection carries MOUNT as well.
  Task<Outcome<bool>> shares_connection();
  Task<Outcome<Ok>> mount();
  // What version 4 has in place of mount().
  Task<Outcome<Ok>> begin_version_4(nfs4::CallbackService* callbacks);
  Outcome<Ok> listen(rpc::CallbackListener* listener);
  Task<Outcome<Ok>> connect_back_channel(rpc::Connector& tcp, CancelToken cancel,
                                         nfs4::CallbackService& callbacks);
  Task<Outcome<Ok>> call_back_by_tcp(rpc::Connector& tcp);
  rpc::Channel& mount_channel();
  Task<void> end();

  Url url_;
  FileSystemOptions options_;
  // With delegations; they outlive the connections.
  std::unique_ptr<nfs4::CallbackService> callbacks_;
  std::unique_ptr<nfs4::CallbackService> callbacks_by_tcp_;  // of call_back_by_tcp()
  std::unique_ptr<nfs4::CallbackServiceV40> callbacks_v40_;
  rpc::CallbackListener* listener_ = nullptr;  // listens
  std::unique_ptr<SpreadChannel> nfs_;
  std::optional<Address> nfs_at_;
  std::unique_ptr<rpc::Channel> joining_;  // not of nfs_ yet
  std::unique_ptr<rpc::Channel> back_;     // for callbacks alone; null: they come on nfs_
  std::unique_ptr<rpc::Channel> mount_;    // null: the NFS connection carries MOUNT as well
  std::shared_ptr<nfs4::Nfs4> protocol_;   // of version 4
  std::unique_ptr<FileSystem> files_;
  std::string path_;
};

}  // namespace stag::nfs::client
