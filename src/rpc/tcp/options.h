// Options of RPC over TCP with record marking (RFC 5531 section 11).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/loop.h"
#include "base/network.h"
#include "oncrpc/record_limits.h"

namespace stag::rpc::tcp {

// Limits of one connection.
struct StreamLimits {
  oncrpc::RecordLimits records;
  // While more than this many bytes of memory wait to be sent, this end reads nothing, unless it
  // awaits a Reply itself: the peer must take its Replies first. A Reply counts with the memory
  // that holds it, which for a short one is more than its bytes. Zero: reading never stops (for the
  // client: two sides that stop would wait for each other).
  std::size_t queued = 0;
  // Within this time the peer must acknowledge some of the bytes that wait to be sent, or, when a
  // record is begun, send some of it; any number of bytes is progress. Zero: no limit.
  Duration stall = std::chrono::seconds(60);
  // A record must be complete within this time after its first byte, even if bytes come steadily.
  // Time in which this side reads nothing does not count. Zero: no limit.
  Duration whole_record = std::chrono::seconds(60);
};

struct ChannelOptions {
  Duration connect_timeout = std::chrono::seconds(10);  // of one attempt
  // The pause before the next attempt, which doubles, with jitter.
  Duration backoff_min = std::chrono::milliseconds(100);
  Duration backoff_max = std::chrono::seconds(10);
  // When the server has sent no byte for this long after a Call, the Channel sends a NULL call.
  // When for four times that long the server has sent none, and its TCP has acknowledged none of
  // the bytes sent before the NULL call, the Channel closes the connection. Zero: never. The
  // time-outs of calls make no difference.
  Duration probe_after = std::chrono::seconds(15);
  // Its stall limit is zero: probe_after finds a server that has gone.
  StreamLimits stream{
      .records = {}, .queued = 0, .stall = Duration::zero(), .whole_record = Duration::zero()};
  // Calls of the server in progress (RFC 8167); see ServerOptions::max_calls.
  std::size_t max_reverse_calls = 16;
  // Seed of XIDs and jitter; 0: the system's random numbers.
  std::uint32_t seed = 0;
};

struct ServerOptions {
  std::size_t max_connections = 4096;  // on all loops; a further one is closed at once
  // Connections from one address; 0: a quarter of max_connections, but enough for an ordinary
  // client.
  std::size_t max_connections_per_peer = 0;
  // The networks that clients may connect from; empty: any.
  std::vector<IpNetwork> allow{};
  // Calls in progress on one connection; at this number the server reads no more from it until a
  // Call ends. While it awaits the client's Reply to a Call of its own (RFC 8167) it reads on, and
  // Calls that come before that Reply wait: at most max_calls of them, or 4 MiB. A Reply that comes
  // behind more is read when a Call in progress has ended, by its time-out if all await Replies.
  std::size_t max_calls = 32;
  // Memory budgets of one connection and of all connections: bytes of Calls and Replies. A Call
  // beyond a budget waits.
  std::uint64_t max_bytes = 64u << 20;
  std::uint64_t max_bytes_all = 1u << 30;
  StreamLimits stream{.records = {},
                      .queued = 8 << 20,
                      .stall = std::chrono::seconds(60),
                      .whole_record = std::chrono::seconds(60)};
  // Seed of the XIDs of Calls to clients (RFC 8167); 0: the system's random numbers.
  std::uint32_t seed = 0;
};

}  // namespace stag::rpc::tcp
