// What clients behind one address have together, so that limits can be shared out by address, and
// which of their client IDs nobody has confirmed yet.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/brief_mutex.h"
#include "nfs/state/types.h"

namespace stag::nfs::state {

// Thread: any.
class Accounts {
 public:
  explicit Accounts(std::size_t unconfirmed_limit) : limit_(unconfirmed_limit) {}

  // Where there are more than that already, each new one takes the place of another.
  void limit_unconfirmed(std::size_t limit);
  // Of this address; lives as long as a client holds it.
  std::shared_ptr<AddressAccount> join(const std::string& address);
  // One more that is not confirmed. Yields the one that has to go instead, or 0: the oldest of the
  // address that has most of them.
  ClientId add_unconfirmed(const std::string& address, ClientId clientid);
  // It was confirmed or is gone.
  void remove_unconfirmed(const std::string& address, ClientId clientid);
  // Forgets addresses that nobody has anything of.
  void sweep();

 private:
  struct Entry {
    explicit Entry(const std::string& address)
        : account(std::make_shared<AddressAccount>(address)) {}
    std::shared_ptr<AddressAccount> account;
    std::vector<ClientId> unconfirmed;  // the oldest first
    bool unused() const { return account.use_count() == 1 && unconfirmed.empty(); }
  };
  using Entries = std::unordered_map<std::string, Entry>;
  using Ranked = std::pair<std::size_t, const std::string*>;  // unconfirmed IDs, address

  void rank(const Entries::value_type& entry, std::size_t before);

  mutable BriefMutex mutex_;
  std::size_t limit_;
  Entries entries_;
  std::set<Ranked> ranks_;  // of those with unconfirmed IDs
  std::size_t unconfirmed_ = 0;
};

}  // namespace stag::nfs::state
