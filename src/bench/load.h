// The measured side: operations of the NFS client against a server process, so many in flight, for
// so long.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/raw_peer.h"
#include "endpoint/loops.h"
#include "nfs/client/session.h"
#include "rpc/rdma/options.h"

namespace stag::bench {

enum class Operation { Null, Getattr, Read, Write };

struct LoadOptions {
  bool crc = false;
  std::uint32_t busy_poll_us = 0;
};

// One connection to a server, and a file on it. Blocks its caller; the work is done on a loop of
// its own.
class Load {
 public:
  // Of the file that the operations work on, and of the part of it that those of 64 KiB and more go
  // through again and again: little enough to stay in a cache, so that the transport is measured.
  static constexpr std::size_t kFileBytes = 64 << 20;
  static constexpr std::size_t kBulkBytes = 4 << 20;

  // `url` names a directory that may be written to. Fails with a sentence.
  static Result<std::unique_ptr<Load>, std::string> open(const std::string& url,
                                                         const LoadOptions& options = {});
  ~Load();
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  // Writes the whole file again, in large pieces, so that a figure does not depend on what was
  // measured before it. False: trouble() says why.
  bool renew();
  // `depth` operations in flight, each of `bytes`: at random places of the file below 64 KiB, one
  // block after the other from there on. CPU time is this process's and `server`'s.
  // More than the server takes in one call goes in several. A Sample of no operations: trouble()
  // says why.
  Sample run(Operation operation, std::size_t bytes, unsigned depth, double seconds, pid_t server);
  const std::string& trouble() const { return trouble_; }

  // Bytes of a request and its reply on the wire, as measured over the last run() when all of it
  // went inline.
  struct WireBytes {
    std::size_t request = 0, reply = 0;
  };
  WireBytes wire_bytes(Operation operation, std::size_t bytes) const;

 private:
  struct Running;
  explicit Load(const LoadOptions& options);
  Task<Result<Ok, std::string>> prepare(nfs::client::Url url, LoadOptions options);
  Task<void> worker(Running& running, std::size_t index);
  Task<void> run_workers(Running& running, unsigned depth);
  Task<bool> once(Running& running, MutableBytes memory);
  Task<bool> read(std::uint64_t offset, MutableBytes memory);
  Task<bool> write(std::uint64_t offset, MutableBytes memory);
  template <class Outcome>
  bool good(const Outcome& outcome);

  endpoint::Loops loops_;
  rpc::rdma::Moved moved_;
  std::unique_ptr<rpc::Connector> connector_, mount_connector_;
  std::unique_ptr<nfs::client::Session> session_;
  nfs::client::Handle file_;
  std::vector<std::byte> memory_;
  std::string trouble_;                         // of the last run
  std::uint64_t calls_ = 0, inline_bytes_ = 0;  // of the last run
};

}  // namespace stag::bench
