// An NFS server as the client commands use it: the session that a URL names, with the connectors
// and counters below it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/cancel.h"
#include "base/loop.h"
#include "cli/support/arguments.h"
#include "cli/support/command.h"
#include "cli/support/date.h"
#include "cli/support/further_loops.h"
#include "endpoint/connector.h"
#include "fabric/fabric.h"
#include "nfs/client/session/mount.h"
#include "nfs/client/session/session.h"
#include "rpc/with_channel.h"

namespace stag::cli {

// The options that every client command has.
struct RemoteOptions {
  std::uint32_t timeout = 60;  // seconds without an answer before a call is given up
  bool timeout_given = false;  // by the user, who may say the usual value
  rpc::rdma::TransferStats* transfer_stats = nullptr;  // counts, and outlives the Remote
  rpc::rdma::TransportOptions rdma{};
  std::uint32_t credits = rpc::rdma::ChannelOptions{}.credits;
  std::string fabric = "iwarp";
  std::string device{};
  bool open_regions = false;
  bool delegations = false;  // of files, where the version has them: for one that stays
  // For how long a server that is not there yet is tried again: minutes.
  std::uint32_t retry = 0;
  // A server that is not ready yet is waited for like one that does not answer.
  bool hard = false;
  bool offloads = false;  // copies of the server's own, where the version has them
  std::optional<std::uint32_t> connections{};  // in place of the URL's
  // That work for connections, this one counted; each further one has a connection at least.
  std::uint32_t loops = 1;
  // Where the URL names no version: 3, which alone has exports and, as they are, access control
  // lists of POSIX, goes before 4.
  bool version_3_first = false;
  bool others_if_refused = false;  // behind version 3: also where MOUNT refuses the path

  void declare(Arguments& arguments);
};

// The options about RPC-over-RDMA that both sides have.
void declare_rdma(Arguments& arguments, rpc::rdma::TransportOptions& transport,
                  std::uint32_t& credits);

// This process's user and groups as AUTH_SYS credentials.
rpc::Credentials own_credentials();
// What NFS is called with, as sec= in the URL says. Used on one loop. Kind::Url where Kerberos
// cannot be used; may block.
Outcome<rpc::Credentials> nfs_credentials(const nfs::client::Url& url);

// Splits "a/b/c" into the directory "a/b" and the name "c". The name is empty for the root.
struct Place {
  std::string directory;
  std::string name;
  bool slash = false;  // behind the name: only a directory is, or gets, that
};
Place place_of(std::string path);

class Remote {
 public:
  // Kind::Url when `url` is none.
  static Task<Outcome<std::unique_ptr<Remote>>> open(Run& run, std::string url,
                                                     const RemoteOptions& options);

  nfs::client::FileSystem& files() { return session_->files(); }
  // The same files for operations that an interruption by the user must not cancel, such as
  // creating a name: the caller gets the answer, unless it takes longer than kCleaningTimeout after
  // the interruption.
  nfs::client::FileSystem& settling() { return *settling_; }
  // The same files for cleaning up after an interruption: not cancelled, with a short timeout.
  nfs::client::FileSystem& cleaner() { return *cleaner_; }
  // The same files for operations that only `cancel` cancels.
  nfs::client::FileSystem files_until(CancelToken cancel) const;
  // The path of the URL below the root of files(); empty: the root itself.
  const std::string& path() const { return session_->path(); }
  // The same with the '/' that the URL may have behind it.
  std::string slashed_path() const;
  const nfs::client::Url& url() const { return session_->url(); }
  TimeRange times() const;
  // Fewer than the URL asks for where the server takes no more.
  std::size_t connections() const { return session_->connections(); }
  // As far as is known.
  bool called_back() const { return session_->called_back(); }
  // Where the server is, without a name service; the first of its addresses.
  Task<Outcome<Address>> numeric_address();

  // As FileSystem::walk(), but a path with '/' behind it is that of a directory, if need be through
  // a link, as POSIX has it (Base Definitions, 4.13).
  Task<Outcome<nfs::client::Node>> walk(std::string path,
                                        nfs::client::Links links = nfs::client::Links::Follow);
  // The entry of `directory` that `place` names, which is not followed.
  Task<Outcome<nfs::client::Node>> entry(nfs::client::Handle directory, Place place);
  // What the URL names.
  Task<Outcome<nfs::client::Node>> named(nfs::client::Links links = nfs::client::Links::Follow) {
    return walk(slashed_path(), links);
  }

  // What to say where version 4 finds the path of the URL in no export, but in the directories that
  // lead to them; empty: it is in one, or that is not known.
  Task<std::string> outside_exports();
  // `error`, or that instead, where it may be why.
  Task<nfs::client::Error> explained_by_exports(nfs::client::Error error);

  // Awaited before the end. The first time it takes no memory.
  Task<void> close() {
    return closing_ ? *std::exchange(closing_, std::nullopt) : session_->close();
  }

 private:
  Remote(Run& run, const RemoteOptions& options);
  static Task<Outcome<std::unique_ptr<Remote>>> open_once(Run& run, std::string url,
                                                          const RemoteOptions& options);
  void share(nfs::client::FileSystemOptions options);
  Outcome<Ok> start_loops(const nfs::client::Url& url, const RemoteOptions& options);

  Run& run_;
  const Duration resolve_for_;
  std::optional<Address> numeric_address_;
  nfs::client::FileSystemOptions options_;

  CancelSource settled_;  // cancelled some time after the user's interruption
  Timer settling_time_;
  CancelCallback on_interrupt_;
  std::unique_ptr<rpc::Connector> nfs_connector_;
  std::unique_ptr<FurtherLoops> further_loops_;  // null: there is one loop
  std::unique_ptr<rpc::Connector> mount_connector_;
  std::unique_ptr<rpc::CallbackListener> callbacks_;  // null: the URL names no place for one
  std::unique_ptr<nfs::client::Session> session_;
  std::optional<Task<void>> closing_;  // of the session
  std::unique_ptr<nfs::client::FileSystem> settling_, cleaner_;
};

// How long a server may be silent when it is connected to and asked for the first time.
struct BeginPatience {
  Duration call;       // one connection, or one call
  Duration all_tries;  // from then on nobody tries again
  friend bool operator==(const BeginPatience&, const BeginPatience&) = default;
};
// What the user says holds. A mount waits for ever for a server that it has begun with; for its
// first answer, by whatever transport, as long as a host is given to take a connection.
BeginPatience begin_patience(const RemoteOptions& options);

// How the files of `url` are called for.
nfs::client::FileSystemOptions file_system_options(const nfs::client::Url& url,
                                                   const RemoteOptions& options);

// The two connectors that reach the services of `url`; both outlive their channels. By RDMA, one
// attempt to connect leaves `reserve` of its time. `tells_choice`: of the fabric, where there was
// one.
std::unique_ptr<rpc::Connector> nfs_connector(net::EpollLoop& loop, const nfs::client::Url& url,
                                              const RemoteOptions& options,
                                              Duration reserve = Duration::zero(),
                                              bool tells_choice = true);
// The fabric of `url`, for messages that no Channel would send. Auto: software iWARP.
std::unique_ptr<fabric::Fabric> rdma_fabric(net::EpollLoop& loop, const nfs::client::Url& url,
                                            const RemoteOptions& options);
std::unique_ptr<rpc::Connector> tcp_connector(net::EpollLoop& loop, const RemoteOptions& options);
// A Channel by one of them; a host that is silent is tried again for as long as the user says.
Task<rpc::ConnectedChannel> connect_patiently(Run& run, rpc::Connector& connector, Address at,
                                              const RemoteOptions& options);

// What the MOUNT service of `url` exports, whatever the path of the URL.
Task<Outcome<std::vector<nfs::client::ListedExport>>> exports_of(Run& run, nfs::client::Url url,
                                                                 const RemoteOptions& options);

}  // namespace stag::cli
