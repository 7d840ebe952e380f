#include "nfs/export/deferred_calls.h"

#include "rpc/connection.h"

namespace stag::nfs {

namespace {

template <class Key>
std::size_t count_of(const std::unordered_map<Key, std::size_t>& counts, const Key& key) {
  const auto found = counts.find(key);
  return found == counts.end() ? 0 : found->second;
}

template <class Key>
void discount(std::unordered_map<Key, std::size_t>& counts, const Key& key) noexcept {
  const auto found = counts.find(key);
  if (--found->second == 0) counts.erase(found);
}

}  // namespace

std::optional<DeferredCalls::Place> DeferredCalls::enter(const rpc::Origin& origin) {
  if (origin.connection == nullptr) return std::nullopt;
  const std::uint64_t connection = origin.connection->id();
  std::string address = origin.peer.host;
  const std::scoped_lock lock(mutex_);
  if (all_ >= limits_.in_all || count_of(of_connection_, connection) >= limits_.of_connection ||
      count_of(of_address_, address) >= limits_.of_address)
    return std::nullopt;
  // Nothing fails once something is counted.
  of_connection_.try_emplace(connection, 0);
  try {
    ++of_address_[address];
  } catch (...) {
    if (count_of(of_connection_, connection) == 0) of_connection_.erase(connection);
    throw;
  }
  ++of_connection_[connection];
  ++all_;
  return Place(*this, connection, std::move(address));
}

void DeferredCalls::leave(const Place& place) noexcept {
  const std::scoped_lock lock(mutex_);
  discount(of_connection_, place.connection_);
  discount(of_address_, place.address_);
  --all_;
}

}  // namespace stag::nfs
