#include "net/connection_limits.h"

#include <algorithm>

namespace stag::net {

std::shared_ptr<ConnectionLimits> ConnectionLimits::make(std::size_t all, std::size_t each) {
  return std::shared_ptr<ConnectionLimits>(new ConnectionLimits(all, each));
}

void ConnectionLimits::change(std::size_t all, std::size_t each) {
  const std::lock_guard lock(mutex_);
  all_ = all;
  each_ = each != 0 ? each : usual(all);
}

std::size_t ConnectionLimits::usual(std::size_t all) {
  constexpr std::size_t kFew = 8;
  return std::max(all / 4, std::min(all, kFew));
}

// Made before anything is counted, so that nothing is to be undone when there is no memory for it.
struct ConnectionLimits::Taken {
  ~Taken() {
    if (counted) places->give_back(host);
  }
  std::shared_ptr<ConnectionLimits> places;
  std::string host;
  bool counted = false;
};

Result<ConnectionLimits::Place, Reason> ConnectionLimits::take(const Address& peer) {
  const auto place = std::make_shared<Taken>();
  place->places = shared_from_this();
  place->host = peer.host;
  const std::lock_guard lock(mutex_);
  if (taken_ >= all_) return Failure{Reason::TooManyConnections};
  std::size_t& of_host = hosts_[peer.host];
  if (of_host >= each_) return Failure{Reason::TooManyConnectionsOfPeer};
  ++taken_;
  ++of_host;
  place->counted = true;
  return Place(place);
}

std::size_t ConnectionLimits::taken() const {
  const std::lock_guard lock(mutex_);
  return taken_;
}

bool ConnectionLimits::has_its_share(const Address& peer) const {
  const std::lock_guard lock(mutex_);
  const auto found = hosts_.find(peer.host);
  return found != hosts_.end() && found->second >= each_;
}

void ConnectionLimits::give_back(const std::string& host) {
  const std::lock_guard lock(mutex_);
  --taken_;
  const auto found = hosts_.find(host);
  if (--found->second == 0) hosts_.erase(found);
}

}  // namespace stag::net
