// ProtocolOptions: how an NFS client makes its calls, whatever version of NFS it speaks. Plain
// values; functions in them are called on the loop of the client's Channel.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/cancel.h"
#include "rpc/client.h"

namespace stag::nfs::client {

struct ProtocolOptions {
  static constexpr Duration kUsualTimeout = std::chrono::seconds(60);
  static constexpr Duration kUsualJukeboxFor = std::chrono::minutes(2);

  rpc::Credentials credentials{};
  // Versions 4.1 and 4.2: the credentials that make and end the session; nullopt: `credentials`.
  // With integrity the client asks for SP4_MACH_CRED: the server accepts calls that manage the
  // session by these credentials only (RFC 8881 section 2.10.8.3).
  std::optional<rpc::Credentials> machine_credentials{};
  std::uint32_t version = 3;             // of NFS: 2, 3 or 4
  std::optional<std::uint32_t> minor{};  // of version 4; nullopt: the highest of both sides
  // Version 4 (4.0 with Connectors::callbacks): the server may delegate files that are open. Until
  // it recalls a delegation, the client opens the file and tells its attributes without asking the
  // server (RFC 8881 section 10.4).
  bool delegations = false;
  // Version 4.1 and later: the server may go on with a COPY after its answer; the client offers a
  // back channel, as for `delegations`, by which CB_OFFLOAD tells of the end (RFC 7862 section
  // 16.1).
  bool offloads = false;
  // Version 4: how many READs one COMPOUND of read_several() has. Over RDMA each brings a Write
  // chunk, and a client that does not know how many its server takes sends one (RFC 8267 section
  // 6.4.2): more is for servers that are known to take them. Up to kMostReadsAtOnce, in versions
  // 4.1 and 4.2 ten.
  static constexpr std::uint32_t kMostReadsAtOnce = 16;
  std::uint32_t reads_at_once = 1;
  CancelToken cancel{};              // cancels every operation
  Duration timeout = kUsualTimeout;  // of one call; zero: waits for ever
  // How long the client repeats a call that the server answers with Status::Delay (NFS3ERR_JUKEBOX,
  // RFC 1813 section 2.6), but no longer than `timeout`; and the pauses in between, which double.
  // When both have the values set here, the client repeats the call for `jukebox_for`, whatever
  // `timeout` is, and in version 4 for the length of a lease and half a minute if that is longer:
  // so long a server that has restarted may have its grace period.
  Duration jukebox_for = kUsualJukeboxFor;
  Duration jukebox_pause_min = std::chrono::milliseconds(100);
  Duration jukebox_pause_max = std::chrono::seconds(5);
};

// Watches FileSystem::copy_range(), which may take long.
struct CopyWatch {
  // Called from time to time with the bytes of the range that are copied. May be empty.
  std::function<void(std::uint64_t bytes)> progress{};
  // Cancels this copy alone. copy_range() then ends when the server has stopped writing: it waits
  // for the answer to COPY, and cancels a copy that the server goes on with (RFC 7862 15.8). A
  // server that does not answer within `timeout`, or while this client ends, may go on writing.
  CancelToken cancel{};
};

}  // namespace stag::nfs::client
