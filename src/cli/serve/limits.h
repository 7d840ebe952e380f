// Limits on what clients may use of a server: options of `stag serve`, for each of its listeners.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "cli/serve/process.h"
#include "cli/support/arguments.h"
#include "endpoint/options.h"

namespace stag::cli {

class Limits {
 public:
  void declare(Arguments& arguments);
  // Data that may wait for one store that does not answer, so that most memory is left for others.
  std::uint64_t waiting_bytes() const { return rdma_.max_bytes_all / 4; }
  Duration stall_limit() const { return std::chrono::seconds(stall_seconds_); }
  std::uint32_t max_chunk_bytes() const { return rdma_.transport.max_chunk_bytes; }
  // 0: as few as the fabric or transport takes for usual.
  std::uint32_t connections_per_client() const { return rdma_.max_connections_per_peer; }
  // Of the listeners of one address, of `addresses` in all.
  ConnectionLimits connections(std::uint64_t open_files, std::size_t addresses) const;
  // The limits for the listeners of one address, of `addresses` in all.
  void apply(endpoint::ListenOptions& options, std::uint64_t open_files,
             std::size_t addresses) const;

 private:
  rpc::rdma::ServerOptions rdma_;
  std::optional<std::uint32_t> connections_;
  std::uint32_t reads_ = rdma_.transport.inbound_reads;
  std::uint32_t stall_seconds_ = static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::seconds>(rdma_.transport.stall_limit).count());
};

}  // namespace stag::cli
