#include "cli/serve/limits.h"

#include <fmt/format.h>

#include <algorithm>

namespace stag::cli {
namespace {

constexpr std::uint32_t kMostConnections = 1u << 20;
constexpr std::uint32_t kMostReads = 128;       // that the fabric asks for
constexpr std::uint32_t kLeastChunk = 2 << 20;  // a READ or WRITE of 1 MiB with its headers
constexpr std::uint32_t kMostChunk = 1u << 30;
constexpr std::uint64_t kLeastBytes = 4 << 20;  // of one such Call and its Reply
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;
constexpr std::uint32_t kMostSeconds = 24 * 60 * 60;

}  // namespace

void Limits::declare(Arguments& arguments) {
  arguments.heading("Limits of each listener");
  arguments.number("--max-connections", connections_, 1, kMostConnections,
                   fmt::format("connections, as far as the limit on open files allows [{} over "
                               "RDMA, {} over TCP]",
                               rdma_.max_connections, rpc::tcp::ServerOptions{}.max_connections));
  arguments.number("--connections-per-client", rdma_.max_connections_per_peer, 0, kMostConnections,
                   "connections of one client address; 0: a quarter of all");
  arguments.number("--max-reads", reads_, 1, kMostReads,
                   "RDMA Reads that either side of a connection may have outstanding");
  arguments.size("--max-chunk-bytes", rdma_.transport.max_chunk_bytes, kLeastChunk, kMostChunk,
                 "bytes of one Read chunk of a call over RDMA; a longer one is refused");
  arguments.size(
      "--max-connection-bytes", rdma_.transport.max_bytes, kLeastBytes, kMostBytes,
      "bytes of the calls in progress on one connection, over RDMA of their chunks, and of unsent "
      "replies; further calls wait, and an RDMA call that is larger is refused");
  arguments.size("--max-bytes", rdma_.max_bytes_all, kLeastBytes, kMostBytes,
                 "the same for all connections together");
  arguments.number("--stall-limit", stall_seconds_, 0, kMostSeconds,
                   "seconds until a client loses its connection that makes no progress with taking "
                   "replies, sending data it owes, or finishing a message; 0: never");
  arguments.heading("");
}

ConnectionLimits Limits::connections(std::uint64_t open_files, std::size_t addresses) const {
  const auto kUsualTcp = static_cast<std::uint32_t>(rpc::tcp::ServerOptions{}.max_connections);
  return connections_within(
      open_files, addresses,
      {connections_.value_or(rdma_.max_connections), connections_.value_or(kUsualTcp)});
}

void Limits::apply(endpoint::ListenOptions& options, std::uint64_t open_files,
                   std::size_t addresses) const {
  const ConnectionLimits most = connections(open_files, addresses);
  const Duration stall = stall_limit();
  rpc::rdma::ServerOptions& rdma = options.rdma;
  rdma.max_connections = most.rdma;
  rdma.max_connections_per_peer = rdma_.max_connections_per_peer;
  rdma.max_bytes_all = rdma_.max_bytes_all;
  rdma.transport.inbound_reads = rdma.transport.outbound_reads = reads_;
  rdma.transport.max_chunk_bytes = rdma_.transport.max_chunk_bytes;
  // A Call that exceeds a whole budget is refused, because it would wait for ever.
  rdma.transport.max_bytes = std::min(rdma_.transport.max_bytes, rdma_.max_bytes_all);
  rdma.transport.stall_limit = stall;
  rpc::tcp::ServerOptions& tcp = options.tcp;
  tcp.max_connections = most.tcp;
  tcp.max_connections_per_peer = rdma_.max_connections_per_peer;
  tcp.max_bytes_all = rdma_.max_bytes_all;
  tcp.max_bytes = rdma.transport.max_bytes;
  tcp.stream.stall = tcp.stream.whole_record = stall;
}

}  // namespace stag::cli
