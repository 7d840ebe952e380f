#include "nfs/state/client_table.h"

#include <algorithm>
#include <cstring>

namespace stag::nfs::state {

Removed::~Removed() {
  for (const auto& session : sessions)
    for (Slot& slot : session->slots()) tell(slot.waiters());
}

ClientRecord* ClientShard::find(ClientId clientid) const {
  const auto found = clients_.find(clientid);
  return found == clients_.end() ? nullptr : found->second.get();
}

ClientShard::ByOwner ClientShard::find(const std::string& ownerid) const {
  const auto found = owners_.find(ownerid);
  return found == owners_.end() ? ByOwner{} : found->second;
}

// Bytes 0 to 3: epoch; 4 to 7: place and shard; 8 to 15: what nobody can guess.
SessionId ClientShard::next_session_id(std::uint32_t place) {
  SessionId id{};
  store_be(id.data(), epoch_);
  store_be(id.data() + 4, place * kClientShards + number_);
  store_be(id.data() + 8, ++last_session_);
  store_be(id.data() + 8, siphash(key_, id));
  return id;
}

ClientId ClientShard::add(std::unique_ptr<ClientRecord> record, const StateProtection& protection) {
  const ClientId id = ids_.next();
  record->life = std::make_shared<Life>(id, record->account);
  record->life->protection = protection;
  const auto owner = owners_.try_emplace(record->ownerid).first;
  ClientRecord* const client = record.get();
  try {
    clients_.emplace(id, std::move(record));
  } catch (...) {
    // The record may be gone by now, with the place that it was to have.
    if (owner->second.confirmed == nullptr) owners_.erase(owner);
    throw;
  }
  owner->second.unconfirmed = client;
  return id;
}

void ClientShard::confirm(ClientRecord& client) {
  ByOwner& owner = owners_.find(client.ownerid)->second;
  owner.unconfirmed = nullptr;
  owner.confirmed = &client;
  client.confirmed = true;
}

void ClientShard::make_place(ClientRecord& client) {
  client.sessions.reserve(client.sessions.size() + 1);
  if (!free_places_.empty()) return;
  free_places_.push_back(static_cast<std::uint32_t>(sessions_.size()));
  try {
    // remove() gives a place back without asking for memory.
    if (free_places_.capacity() <= sessions_.size()) free_places_.reserve(2 * sessions_.size() + 1);
    sessions_.emplace_back();
  } catch (...) {
    free_places_.pop_back();
    throw;
  }
}

SessionId ClientShard::add(std::unique_ptr<Session> session) {
  const std::uint32_t place = free_places_.back();
  free_places_.pop_back();
  session->id = next_session_id(place);
  session->client().sessions.push_back(place);
  sessions_[place] = std::move(session);
  return sessions_[place]->id;
}

void ClientShard::remove(Session& session, Removed& removed) {
  removed.sessions.reserve(removed.sessions.size() + 1);
  const std::uint32_t place = load_be<std::uint32_t>(session.id.data() + 4) / kClientShards;
  std::erase(session.client().sessions, place);
  removed.sessions.push_back(std::move(sessions_[place]));
  free_places_.push_back(place);
}

void ClientShard::remove(ClientRecord& client, Removed& removed) {
  removed.clients.reserve(removed.clients.size() + 1);
  removed.sessions.reserve(removed.sessions.size() + client.sessions.size());
  client.life->phase.store(Life::Phase::Ended, std::memory_order_seq_cst);
  while (!client.sessions.empty()) remove(*sessions_[client.sessions.back()], removed);
  const auto owner = owners_.find(client.ownerid);
  (client.confirmed ? owner->second.confirmed : owner->second.unconfirmed) = nullptr;
  if (owner->second.confirmed == nullptr && owner->second.unconfirmed == nullptr)
    owners_.erase(owner);
  auto record = clients_.extract(client.id());
  removed.clients.push_back(std::move(record.mapped()));
}

}  // namespace stag::nfs::state
