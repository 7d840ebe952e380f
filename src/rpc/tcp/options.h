// What an owner may choose about RPC over TCP.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/loop.h"
#include "base/network.h"
#include "oncrpc/record_limits.h"

namespace stag::rpc::tcp {

struct StreamLimits {
  oncrpc::RecordLimits records;
  // Bytes waiting to be sent beyond which nothing is read: the peer must take its Replies first.
  // Zero: reading never stops (a client's side; two sides that stop would wait for each other).
  std::size_t queued = 0;
  // While bytes wait to be sent the peer must acknowledge some within this time, else, while a
  // record is begun, send some. However many there are: only standing still counts. Zero: no limit.
  Duration stall = std::chrono::seconds(60);
  // A record that is begun must be whole within this time, however steadily it trickles; time in
  // which nothing is read on our own account does not count. Zero: no limit.
  Duration whole_record = std::chrono::seconds(60);
};

struct ChannelOptions {
  Duration connect_timeout = std::chrono::seconds(10);
  Duration backoff_min = std::chrono::milliseconds(100);
  Duration backoff_max = std::chrono::seconds(10);
  // No stall limit: a server may take its time, calls have deadlines of their own.
  StreamLimits stream{
      .records = {}, .queued = 0, .stall = Duration::zero(), .whole_record = Duration::zero()};
  std::size_t max_reverse_calls = 16;
  // Of XIDs and jitter; 0 takes one from the system.
  std::uint32_t seed = 0;
};

struct ServerOptions {
  std::size_t max_connections = 4096;  // over all loops; one more is closed at once
  // From one address; 0: a quarter of them, but enough for an ordinary client.
  std::size_t max_connections_per_peer = 0;
  // Whose connections are taken; empty: everybody's.
  std::vector<IpNetwork> allow{};
  // In progress on one connection; at that many it is not read until one ends.
  std::size_t max_calls = 32;
  // Bytes of the Calls and Replies of one connection, and of all together; what is beyond waits
  // (rpc/tcp/budget.h).
  std::uint64_t max_bytes = 64u << 20;
  std::uint64_t max_bytes_all = 1u << 30;
  StreamLimits stream{.records = {},
                      .queued = 8 << 20,
                      .stall = std::chrono::seconds(60),
                      .whole_record = std::chrono::seconds(60)};
};

}  // namespace stag::rpc::tcp
