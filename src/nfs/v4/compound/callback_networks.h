// The networks in which clients of version 4.0 may have themselves called back (decision 0042).
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/brief_mutex.h"
#include "base/network.h"

namespace stag::nfs::nfs4 {

// Thread: any.
class CallbackNetworks {
 public:
  explicit CallbackNetworks(std::vector<IpNetwork> networks) { replace(std::move(networks)); }
  // For addresses that are named from then on.
  void replace(std::vector<IpNetwork> networks) {
    Networks now = std::make_shared<const std::vector<IpNetwork>>(std::move(networks));
    const BriefLock lock(mutex_);
    networks_.swap(now);
  }
  // `host`: as of is_allowed(), for which no networks are all of them, and here none.
  bool contain(std::string_view host) const {
    const Networks networks = all();
    return !networks->empty() && is_allowed(*networks, host);
  }

 private:
  using Networks = std::shared_ptr<const std::vector<IpNetwork>>;
  Networks all() const {
    const BriefLock lock(mutex_);
    return networks_;
  }

  mutable BriefMutex mutex_;
  Networks networks_;
};

}  // namespace stag::nfs::nfs4
