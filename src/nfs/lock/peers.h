// Peers: connections to the clients' hosts: to their lock managers for NLM_GRANTED, to their status
// monitors for SM_NOTIFY.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rpc/channel.h"

namespace stag::nfs::lock {

class Peers {
 public:
  virtual ~Peers() = default;
  // A connection to `program` at the port where it listens on `host`, a numeric address. The caller
  // closes it, on its loop. Fails by itself after a while.
  virtual Task<Result<std::unique_ptr<rpc::Channel>, rpc::CallError>> reach(std::string host,
                                                                            std::uint32_t program,
                                                                            std::uint32_t version,
                                                                            CancelToken cancel) = 0;
};

}  // namespace stag::nfs::lock
