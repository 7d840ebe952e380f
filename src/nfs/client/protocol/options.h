// ProtocolOptions: how an NFS client makes its calls, whatever version of NFS it speaks.
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
  // Versions 4.1 and 4.2: who makes and ends the session, where that is not `credentials`. With
  // integrity the server is asked to keep the session to them (RFC 8881 section 2.10.8.3).
  std::optional<rpc::Credentials> machine_credentials{};
  std::uint32_t version = 3;             // of NFS: 2, 3 or 4
  std::optional<std::uint32_t> minor{};  // of version 4; nullopt: the highest of both sides
  // Version 4 (4.0 with Connectors::callbacks): the server may delegate files that are open. Until
  // it asks for them back, their opens and attributes are answered here (RFC 8881 section 10.4).
  bool delegations = false;
  // Version 4.1 and later: the server may go on with a COPY after its answer, and is given a way to
  // tell of the end, as with `delegations` (RFC 7862 section 16.1).
  bool offloads = false;
  // Version 4: how many READs one COMPOUND of read_several() has. Over RDMA each brings a Write
  // chunk, and a client that does not know how many its server takes sends one (RFC 8267 section
  // 6.4.2): more is for servers that are known to take them. Up to kMostReadsAtOnce.
  static constexpr std::uint32_t kMostReadsAtOnce = 16;
  std::uint32_t reads_at_once = 1;
  CancelToken cancel{};              // cancels every operation
  Duration timeout = kUsualTimeout;  // of one call; zero: waits for ever
  // How long the client repeats a call that the server answers with Status::Delay (NFS3ERR_JUKEBOX,
  // RFC 1813 section 2.6), but no longer than `timeout`; and the pauses in between, which double.
  // Where both are as they are here it is these two minutes, or longer: the grace period of a
  // server of version 4 that has restarted is waited for, a lease and a half minute.
  Duration jukebox_for = kUsualJukeboxFor;
  Duration jukebox_pause_min = std::chrono::milliseconds(100);
  Duration jukebox_pause_max = std::chrono::seconds(5);
};

// Of a copy within the server that takes its time.
struct CopyWatch {
  // Now and then: how many bytes of the range are copied by now. May be empty.
  std::function<void(std::uint64_t bytes)> progress{};
  // Of this copy alone. It is not over before the server has stopped writing: COPY is waited for,
  // and what goes on after its answer is cancelled there, which is waited for, too (RFC 7862 15.8).
  // A server that is silent for `timeout`, or as this client ends, may write on.
  CancelToken cancel{};
};

}  // namespace stag::nfs::client
