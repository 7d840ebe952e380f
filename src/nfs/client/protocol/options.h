// How the calls of a client are made, whatever version of NFS it speaks.
#pragma once

#include <cstdint>

#include "base/cancel.h"
#include "rpc/client.h"

namespace stag::nfs::client {

struct CallerOptions {
  rpc::Credentials credentials{};
  std::uint32_t version = 3;  // of NFS: 2 or 3
  CancelToken cancel{};
  Duration timeout = std::chrono::seconds(60);  // of one call; zero: waits for ever
  // How long Status::Delay ("come back later": a tape robot, a recovering server) is taken for an
  // answer, no longer than `timeout`; and the pauses in between, which double.
  Duration jukebox_for = std::chrono::minutes(2);
  Duration jukebox_pause_min = std::chrono::milliseconds(100);
  Duration jukebox_pause_max = std::chrono::seconds(5);
};

}  // namespace stag::nfs::client
