#include "nfs/lock/client_states.h"

namespace stag::nfs::lock {

ClientStates::Known* ClientStates::find(const Client& client) {
  const auto here = addresses_.find(client.address);
  if (here == addresses_.end()) return nullptr;
  const auto found = here->second.names.find(client.name);
  return found == here->second.names.end() ? nullptr : &found->second.known;
}

// All of it or, where memory runs out, at most another client forgotten.
ClientStates::Known& ClientStates::of(const Client& client) {
  if (const auto here = addresses_.find(client.address); here != addresses_.end()) {
    auto& [names, order] = here->second;
    if (const auto found = names.find(client.name); found != names.end()) {
      order.splice(order.end(), order, found->second.place);
      return found->second.known;
    }
  }
  if (size_ >= limit_) forget_one();
  Names fresh;
  Order place;
  place.push_back(&fresh.try_emplace(client.name).first->first);
  const auto [here, is_new] = addresses_.try_emplace(client.address);
  try {
    if (is_new) ranks_.emplace(0, &here->first);
  } catch (...) {
    addresses_.erase(here);
    throw;
  }
  add_name(*here, std::move(fresh), std::move(place));
  return here->second.names.find(client.name)->second.known;
}

// Asks for no memory.
void ClientStates::add_name(Addresses::value_type& to, Names fresh, Order place) {
  auto& [names, order] = to.second;
  auto rank = ranks_.extract({names.size(), &to.first});
  rank.value().first += 1;
  ranks_.insert(std::move(rank));
  fresh.begin()->second.place = place.begin();
  order.splice(order.end(), place);
  names.merge(fresh);
  ++size_;
}

void ClientStates::forget(const Client& client) {
  const auto here = addresses_.find(client.address);
  if (here == addresses_.end()) return;
  const auto name = here->second.names.find(client.name);
  if (name != here->second.names.end()) remove(here, name);
}

// Asks for no memory.
void ClientStates::remove(Addresses::iterator from, Names::iterator name) {
  auto& [names, order] = from->second;
  auto rank = ranks_.extract({names.size(), &from->first});
  rank.value().first -= 1;
  order.erase(name->second.place);
  names.erase(name);
  --size_;
  if (names.empty())
    addresses_.erase(from);
  else
    ranks_.insert(std::move(rank));
}

void ClientStates::forget_one() {
  const auto here = addresses_.find(*std::prev(ranks_.end())->second);
  auto& [names, order] = here->second;
  remove(here, names.find(*order.front()));
}

}  // namespace stag::nfs::lock
