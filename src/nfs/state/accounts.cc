#include "nfs/state/accounts.h"

#include <algorithm>

namespace stag::nfs::state {

void Accounts::limit_unconfirmed(std::size_t limit) {
  const BriefLock lock(mutex_);
  limit_ = limit;
}

std::shared_ptr<AddressAccount> Accounts::join(const std::string& address) {
  const BriefLock lock(mutex_);
  return entries_.try_emplace(address, address).first->second.account;
}

void Accounts::rank(const Entries::value_type& entry, std::size_t before) {
  const std::size_t now = entry.second.unconfirmed.size();
  // Only the first one takes memory: what goes must not fail.
  auto rank = ranks_.extract({before, &entry.first});
  if (now > 0 && rank.empty()) ranks_.insert({now, &entry.first});
  if (now > 0 && !rank.empty()) {
    rank.value().first = now;
    ranks_.insert(std::move(rank));
  }
  unconfirmed_ += now;
  unconfirmed_ -= before;
}

ClientId Accounts::add_unconfirmed(const std::string& address, ClientId clientid) {
  const BriefLock lock(mutex_);
  auto& entry = *entries_.try_emplace(address, address).first;
  entry.second.unconfirmed.push_back(clientid);
  try {
    rank(entry, entry.second.unconfirmed.size() - 1);
  } catch (...) {
    entry.second.unconfirmed.pop_back();
    throw;
  }
  if (unconfirmed_ <= limit_) return 0;
  return entries_.find(*ranks_.rbegin()->second)->second.unconfirmed.front();
}

void Accounts::remove_unconfirmed(const std::string& address, ClientId clientid) {
  const BriefLock lock(mutex_);
  const auto entry = entries_.find(address);
  if (entry == entries_.end()) return;
  std::vector<ClientId>& ids = entry->second.unconfirmed;
  const std::size_t before = ids.size();
  ids.erase(std::remove(ids.begin(), ids.end(), clientid), ids.end());
  if (ids.size() != before) rank(*entry, before);
  if (entry->second.unused()) entries_.erase(entry);
}

void Accounts::sweep() {
  const BriefLock lock(mutex_);
  std::erase_if(entries_, [](const auto& entry) { return entry.second.unused(); });
}

}  // namespace stag::nfs::state
