// How a lock manager reaches the hosts of its clients: their lock managers to grant, their status
// monitors to tell of a restart.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rpc/channel.h"

namespace stag::nfs::lock {

class Peers {
 public:
  virtual ~Peers() = default;
  // A connection to `program` wherever it listens on `host`, a numeric address; closed by whoever
  // asked for it, and on its loop. Gives up by itself after a while.
  virtual Task<Result<std::unique_ptr<rpc::Channel>, rpc::CallError>> reach(std::string host,
                                                                            std::uint32_t program,
                                                                            std::uint32_t version,
                                                                            CancelToken cancel) = 0;
};

}  // namespace stag::nfs::lock
