// Clients as an administrator sees them: one at a time, each as it is at one moment.
#include "nfs/state/client_table.h"

namespace stag::nfs::state {

namespace {

CallbackState callbacks_of(const ClientRecord& client, const ClientShard& shard) {
  // Of version 4.0 the path is the client's own.
  CallbackState found =
      client.callback_path != nullptr ? CallbackState::Bound : CallbackState::None;
  for (const std::uint32_t place : client.sessions) {
    const Session& session = shard.session_at(place);
    if (session.backchannel_fault) return CallbackState::Fault;
    if (session.has_back_channel())
      found = CallbackState::Bound;
    else if (session.lost_back_channel() && found == CallbackState::None)
      found = CallbackState::Lost;
  }
  return found;
}

// All but the texts.
ClientInfo info_of(const ClientRecord& client, const ClientShard& shard, TimePoint now) {
  ClientInfo info;
  info.clientid = client.id();
  info.minor = client.minor;
  info.phase = client.life->phase.load(std::memory_order_acquire);
  info.confirmed = client.confirmed;
  info.sessions = static_cast<std::uint32_t>(client.sessions.size());
  info.states = client.life->states.load(std::memory_order_relaxed);
  info.revoked = client.life->admin_revoked.load(std::memory_order_relaxed) +
                 client.life->recallable_revoked.load(std::memory_order_relaxed) +
                 client.life->expired_revoked.load(std::memory_order_relaxed);
  info.callbacks = callbacks_of(client, shard);
  // Though one of its requests may run, which shows nobody that the client is there.
  info.idle = now - client.renewed;
  return info;
}

}  // namespace

std::vector<ClientId> Clients::ids(std::uint32_t number) const {
  std::vector<ClientId> ids;
  const ClientShard& shard = *impl_->shards[number];
  // Memory comes first: none is asked for under the lock.
  for (std::size_t room = 64;; room *= 2) {
    ids.reserve(room);
    const BriefLock lock(shard.mutex);
    if (shard.all().size() > room) continue;
    for (const auto& [id, client] : shard.all()) ids.push_back(id);
    return ids;
  }
}

std::optional<ClientInfo> Clients::info(ClientId clientid, TimePoint now) const {
  constexpr std::size_t kOwner = 1100, kPrincipal = 300, kAddress = 80;
  std::string owner, principal, address;
  owner.reserve(kOwner);
  principal.reserve(kPrincipal);
  address.reserve(kAddress);
  ClientInfo info;
  {
    const ClientShard& shard = impl_->shard_of(clientid);
    const BriefLock lock(shard.mutex);
    const ClientRecord* const client = shard.find(clientid);
    if (client == nullptr) return std::nullopt;
    info = info_of(*client, shard, now);
    owner.assign(client->ownerid);
    principal.assign(client->principal);
    address.assign(client->address);
  }
  info.co_ownerid = std::move(owner);
  info.principal = std::move(principal);
  info.address = std::move(address);
  return info;
}

std::vector<ClientInfo> Clients::list(TimePoint now) const {
  std::vector<ClientInfo> infos;
  for (std::uint32_t shard = 0; shard < kShards; ++shard)
    for (const ClientId id : ids(shard))
      if (auto found = info(id, now)) infos.push_back(*std::move(found));
  return infos;
}

}  // namespace stag::nfs::state
