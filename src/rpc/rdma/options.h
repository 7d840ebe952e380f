// Options of RPC-over-RDMA channels and servers, and counters of transfers.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/loop.h"
#include "base/network.h"
#include "rpcrdma/peer_quirks.h"

namespace stag::rpc::rdma {

// Counts how the data of calls travelled, at the Requester. Bytes are payload. The loop writes the
// counters; any thread may read them.
struct TransferStats {
  using Count = std::atomic<std::uint64_t>;
  Count calls{0};
  Count inline_bytes{0};                        // of Calls and Replies, without transport headers
  Count read_chunks{0}, read_chunk_bytes{0};    // arguments the server fetched
  Count write_chunks{0}, write_chunk_bytes{0};  // results the server placed
  Count position_zero_chunks{0}, position_zero_bytes{0};  // Long Calls
  Count reply_chunks{0}, reply_chunk_bytes{0};            // Long Replies
};

inline constexpr std::uint32_t kUsualInlineSize = 16384;

// Options of either end. Both ends announce their inline sizes in private data (RFC 8797), and each
// direction uses the smaller one; a peer that announces none counts as one with 1024 bytes.
struct TransportOptions {
  // Bytes of the longest Send and Receive, transport header included. nullopt: kUsualInlineSize,
  // and the code that knows the fabric may set inline_call_size.
  std::optional<std::uint32_t> inline_size{};
  // The same for messages from client to server, if larger: a WRITE up to this size needs no RDMA
  // Read and thus one round trip less. Useful where receive buffers cost nothing before they are
  // used, as in software. Zero: inline_size.
  std::uint32_t inline_call_size = 0;
  bool remote_invalidation = true;   // RFC 8797 4.1
  std::uint32_t max_segments = 16;   // of each chunk that this end offers (RFC 8267 6.4.2)
  std::uint32_t inbound_reads = 32;  // IRD, RDMA Reads of the peer at a time; Linux: a power of two
  std::uint32_t outbound_reads = 32;  // ORD, RDMA Reads of this end at a time
  bool crc = false;                   // iWARP: CRC32C on every FPDU
  // Read chunks of this end include the XDR pad of their item. RFC 8166 section 3.4.5.2 advises
  // against it; some Responders need it.
  bool pad_read_chunks = false;
  std::uint32_t max_chunk_bytes = 16u << 20;  // a larger chunk is refused (RFC 8166 8.1.4)
  // Memory budget of one connection: bytes that the chunks of the peer's Calls in progress occupy.
  std::uint64_t max_bytes = 64u << 20;
  // A peer that makes no progress for this long with the data of RDMA Reads, with taking sent
  // bytes, or with a message that it has begun, loses the connection (decision 0012); so does one
  // that the fabric cannot cut off in that time from the memory of a call that has ended. Zero:
  // never.
  Duration stall_limit = std::chrono::seconds(60);

  // Bytes of the longest message from server to client, and from client to server.
  std::uint32_t reply_size() const { return inline_size.value_or(kUsualInlineSize); }
  std::uint32_t call_size() const { return std::max(reply_size(), inline_call_size); }
};

struct ChannelOptions {
  TransportOptions transport;
  std::uint32_t credits = 64;          // requested in every Call
  std::uint32_t reverse_credits = 16;  // granted once serve_reverse() was called (RFC 8167)
  bool reverse_chunks = true;          // serve reverse Calls that have chunks (RFC 8167 5.3)
  rpcrdma::PeerQuirks quirks{};
  Duration connect_timeout = std::chrono::seconds(10);  // of one attempt
  // How long the Channel tries to replace a lost connection; then the waiting calls fail. The
  // pauses between attempts double from 50 ms to 5 s, with jitter.
  Duration reconnect_for = std::chrono::seconds(120);
  // When calls are in progress and no byte has moved for this long, the Channel sends a NULL call
  // in a credit that it keeps free for that (RFC 8267 section 6.7.2); without a Reply within the
  // same time it closes the connection. Where the server grants a single credit, and a Call has it,
  // the connection is closed after four times that long without a byte. A NULL call also goes
  // before the Calls of a new connection, for the credits that its Reply brings. Zero: neither.
  Duration probe_after = std::chrono::seconds(15);
  std::uint64_t seed = 0;                   // of XIDs and jitter; 0: the system's random numbers
  TransferStats* transfer_stats = nullptr;  // counts transfers; outlives the Channel. Null: none
};

struct ServerOptions {
  TransportOptions transport;
  std::uint32_t credits = 128;         // granted to every connection
  std::uint32_t reverse_credits = 16;  // requested for Calls to the client
  // Whether Calls to the client may have chunks; if false, a Call that needs chunks fails (RFC 8167
  // section 5.3).
  bool reverse_chunks = true;
  // Seed of the XIDs of Calls to clients; 0: the system's random numbers.
  std::uint32_t seed = 0;
  std::uint64_t max_bytes_all = 1u << 30;  // memory budget for chunks of all connections
  std::uint32_t max_connections = 16384;
  // Connections from one address; 0: a quarter of max_connections, but enough for an ordinary
  // client.
  std::uint32_t max_connections_per_peer = 0;
  // The networks that clients may connect from; empty: any. Other requests are rejected before any
  // memory is exposed to the client (RFC 8166 section 8.1.1).
  std::vector<IpNetwork> allow{};
};

}  // namespace stag::rpc::rdma
