// How many connections a listener has, in all and from each address, so that one host cannot take
// the places of all others. Hosts behind one address share its places; a host with many addresses
// has those of each.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "base/address.h"
#include "base/reason.h"
#include "base/result.h"

namespace stag::net {

// Any thread.
class ConnectionLimits : public std::enable_shared_from_this<ConnectionLimits> {
 public:
  // Given back when it goes, on any thread.
  using Place = std::shared_ptr<void>;

  // `each` 0: what usual() says.
  static std::shared_ptr<ConnectionLimits> make(std::size_t all, std::size_t each);
  // A quarter of all places, but enough for the few connections of an ordinary client.
  static std::size_t usual(std::size_t all);

  // The limits of those that come from now on; `each` as in make(). An address that
  // has more keeps them.
  void change(std::size_t all, std::size_t each);
  // TooManyConnections or TooManyConnectionsOfPeer when there is none left.
  Result<Place, Reason> take(const Address& peer);
  std::size_t taken() const;
  // Whether the address of `peer` has as many as one may have, whatever all have.
  bool has_its_share(const Address& peer) const;

 private:
  struct Taken;
  ConnectionLimits(std::size_t all, std::size_t each) { change(all, each); }
  void give_back(const std::string& host);

  mutable std::mutex mutex_;
  std::size_t all_ = 0;
  std::size_t each_ = 0;
  std::size_t taken_ = 0;
  std::unordered_map<std::string, std::size_t> hosts_;
};

}  // namespace stag::net
