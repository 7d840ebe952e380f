// What an owner may choose about RPC-over-RDMA, with the defaults most want.
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

// What travelled how, counted at the Requester; written on the loop, readable from any thread.
// Bytes are payload.
struct TransferStats {
  using Count = std::atomic<std::uint64_t>;
  Count calls{0};
  Count inline_bytes{0};                        // of Calls and Replies, Transport headers excluded
  Count read_chunks{0}, read_chunk_bytes{0};    // arguments the server fetched
  Count write_chunks{0}, write_chunk_bytes{0};  // results the server placed
  Count position_zero_chunks{0}, position_zero_bytes{0};  // Long Calls
  Count reply_chunks{0}, reply_chunk_bytes{0};            // Long Replies
};

inline constexpr std::uint32_t kUsualInlineSize = 16384;

// Both ends. Sizes are announced in private data (RFC 8797) and cut to what the peer can take; a
// peer that announces nothing gets 1024 bytes.
struct TransportOptions {
  // Bytes of the longest Send and Receive, header included. Unset: kUsualInlineSize, and whoever
  // knows the fabric may choose inline_call_size.
  std::optional<std::uint32_t> inline_size{};
  // The same for messages from client to server, when it is more: a WRITE up to this size needs no
  // RDMA Read, and so a round trip less. Worth it where the room for a message costs nothing before
  // it is used, as in software. Zero: no more.
  std::uint32_t inline_call_size = 0;
  bool remote_invalidation = true;    // RFC 8797 4.1
  std::uint32_t max_segments = 16;    // per chunk we offer (RFC 8267 6.4.2)
  std::uint32_t inbound_reads = 32;   // IRD: a power of two suits Linux
  std::uint32_t outbound_reads = 32;  // ORD
  bool crc = false;                   // iWARP: CRC32C on every FPDU
  // Our Read chunks include the XDR pad of their item. RFC 8166 3.4.5.2 advises against it; for
  // Responders that cannot do without.
  bool pad_read_chunks = false;
  std::uint32_t max_chunk_bytes = 16u << 20;  // refused above (RFC 8166 8.1.4)
  // Bytes of chunks that the peer's Calls in progress may take on one connection.
  std::uint64_t max_bytes = 64u << 20;
  // A peer that owes something - the data of Reads, to take bytes of ours, the rest of a message -
  // and makes no progress with it for so long loses the connection (fabric::ConnectOptions). Zero:
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
  Duration connect_timeout = std::chrono::seconds(10);
  // A lost connection is tried again this long, with back-off and jitter; then waiting calls fail.
  Duration reconnect_for = std::chrono::seconds(120);
  // Calls are in progress and no byte moved for so long: a NULL call asks whether the server lives,
  // in a credit kept free for it (RFC 8267 6.7.2); no answer in the same time ends the
  // connection. Zero: never.
  Duration probe_after = std::chrono::seconds(15);
  std::uint64_t seed = 0;          // of XIDs and jitter; 0: from the system
  TransferStats* moved = nullptr;  // outlives the Channel
};

struct ServerOptions {
  TransportOptions transport;
  std::uint32_t credits = 128;         // granted to every connection
  std::uint32_t reverse_credits = 16;  // requested for Calls to the client
  // Our Calls to the client may have chunks; false: those that need some fail (RFC 8167 5.3).
  bool reverse_chunks = true;
  std::uint64_t max_bytes_all = 1u << 30;  // of chunks, all connections together
  std::uint32_t max_connections = 16384;
  std::uint32_t max_connections_per_peer = 0;  // from one address; 0: fabric::ListenOptions'
  // Whose connection requests are accepted; empty: everybody's. Others are rejected before any
  // memory is exposed to them (RFC 8166 8.1.1).
  std::vector<IpNetwork> allow{};
};

}  // namespace stag::rpc::rdma
