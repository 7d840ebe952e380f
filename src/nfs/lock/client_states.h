// ClientStates: what is known of the restarts of client hosts. A client stays known when it has
// nothing any more: its status monitor may tell of its restart once more, or only then. Where there
// are too many, the one of whom nothing was heard for longest is forgotten, of the address that has
// most: who calls itself by many names makes only its own forgotten. Not synchronised.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/loop.h"
#include "nfs/lock/range_locks.h"

namespace stag::nfs::lock {

class ClientStates {
 public:
  struct Restart {
    std::int32_t state = 0;
    TimePoint when{};
  };
  struct Known {
    std::int32_t state = 0;          // the NSM state of its latest LOCK; 0: not told
    TimePoint since{};               // when it came first, of what the client has
    std::optional<Restart> restart;  // the latest that its status monitor told of
  };

  explicit ClientStates(std::size_t limit) : limit_(limit) {}

  // Of this client, which is known from then on; good until the next call.
  Known& of(const Client& client);
  // Null when it is not known.
  Known* find(const Client& client);
  void forget(const Client& client);
  // Calls use(known) of each client at this address whose name `is_right`. Asks for no memory.
  template <class IsRight, class Use>
  void each_at(const std::string& address, IsRight is_right, Use use) {
    const auto here = addresses_.find(address);
    if (here == addresses_.end()) return;
    for (auto& [name, entry] : here->second.names)
      if (is_right(name)) use(entry.known);
  }
  // Whether a client is known at this address whose name `is_right`.
  template <class IsRight>
  bool any_at(const std::string& address, IsRight is_right) const {
    const auto here = addresses_.find(address);
    return here != addresses_.end() &&
           std::ranges::any_of(here->second.names,
                               [&](const auto& entry) { return is_right(entry.first); });
  }
  std::size_t size() const { return size_; }

 private:
  using Order = std::list<const std::string*>;  // names, the one heard of last at the end
  struct Name {
    Known known;
    Order::iterator place{};
  };
  using Names = std::map<std::string, Name>;
  struct Address {
    Names names;
    Order order;
  };
  using Addresses = std::map<std::string, Address>;

  void add_name(Addresses::value_type& to, Names fresh, Order place);
  void remove(Addresses::iterator from, Names::iterator name);
  void forget_one();

  const std::size_t limit_;
  Addresses addresses_;
  std::set<std::pair<std::size_t, const std::string*>> ranks_;  // names, address
  std::size_t size_ = 0;
};

}  // namespace stag::nfs::lock
