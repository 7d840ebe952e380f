// The measured side: operations of the NFS client against a server, so many in flight on each of so
// many connections, for so long.
#pragma once

#include <atomic>
#include <deque>
#include <latch>
#include <memory>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/result.h"
#include "bench/load/operation.h"
#include "bench/load/sample.h"
#include "endpoint/loops.h"
#include "nfs/client/session/session.h"
#include "rpc/rdma/options.h"

namespace stag::bench {

struct LoadOptions {
  bool crc = false;
  bool nfs4 = false;          // GETATTR, READ and WRITE are those of NFS version 4.1
  std::uint32_t version = 3;  // of NFS, where the URL names none
  std::uint32_t busy_poll_us = 0;
  unsigned connections = 1;
  unsigned loops = 1;  // of the client
};

// Connections to a server, and a file on it that goes with the LoadGenerator. Blocks its caller,
// which is no loop's thread.
class LoadGenerator {
 public:
  // Of the file that the operations work on, and of the part of it that those of 64 KiB and more go
  // through again and again: little enough to stay in a cache, so that the transport is measured.
  static constexpr std::size_t kFileBytes = 64 << 20;
  static constexpr std::size_t kBulkBytes = 4 << 20;
  static constexpr const char* kFileName = "stag-bench.data";

  explicit LoadGenerator(const LoadOptions& options = {});
  ~LoadGenerator();
  LoadGenerator(const LoadGenerator&) = delete;
  LoadGenerator& operator=(const LoadGenerator&) = delete;

  // Once, before anything else. `url` names a directory that may be written to. Fails with a
  // sentence.
  Result<Ok, std::string> open(const std::string& url);
  // Makes the operations in progress and all later ones fail. Thread: any.
  void stop();

  // Writes the whole file again, in large pieces, so that a figure does not depend on what was
  // measured before it. False: trouble() says why.
  bool renew();
  // `depth` operations in flight on each connection, each of `bytes`: at random places of the file
  // below 64 KiB, one block after the other from there on. CPU time is this process's and
  // `server`'s. More than the server takes in one call goes in several. A Sample of no operations:
  // trouble() says why.
  Sample run(Operation operation, std::size_t bytes, unsigned depth, double seconds, pid_t server);
  const std::string& trouble() const { return trouble_; }
  // Operations that each connection has done in the last run().
  const std::vector<std::uint64_t>& shares() const { return shares_; }

  // Bytes of a request and its reply on the wire, as measured over the last run() when all of it
  // went inline.
  struct WireBytes {
    std::size_t request = 0, reply = 0;
  };
  WireBytes wire_bytes(Operation operation, std::size_t bytes) const;

 private:
  struct Connection {
    explicit Connection(net::EpollLoop& on) : loop(on) {}
    net::EpollLoop& loop;
    CancelSource stopped;
    rpc::Credentials credentials;  // of NFS
    std::unique_ptr<rpc::Connector> nfs, mount;
    std::unique_ptr<nfs::client::Session> session;
    std::optional<Nfs41File> nfs4_file{};
  };
  struct Running;
  using Step = Result<Ok, std::string>;
  void make_connectors(Connection& connection, const nfs::client::Url& url);
  Task<Step> connect(Connection& connection, nfs::client::Url url);
  Task<Step> make_file();
  Task<Step> use_nfs4(Connection& connection);
  Task<Ok> close(Connection& connection);
  Task<void> remove_file(nfs::client::FileSystem& files);
  Task<void> worker(Running& running, std::size_t index);
  Task<void> run_workers(Running& running, unsigned depth, std::latch& done);
  Task<bool> once(Running& running, MutableBytes memory);
  Task<bool> once_by_nfs4(Running& running, MutableBytes memory);
  Task<bool> read(Running& running, MutableBytes memory);
  Task<bool> write(Running& running, MutableBytes memory);

  const LoadOptions options_;
  endpoint::Loops loops_;
  std::atomic<bool> stopped_{false};
  rpc::rdma::TransferStats transfer_stats_;  // of the first connection
  std::deque<Connection> connections_;
  nfs::client::Handle directory_, file_;
  bool has_file_ = false;
  std::vector<std::byte> memory_;
  std::string trouble_;  // of the last run
  std::vector<std::uint64_t> shares_;
  std::uint64_t calls_ = 0, inline_bytes_ = 0;  // of the last run
};

}  // namespace stag::bench
