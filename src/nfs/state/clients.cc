#include "nfs/state/clients.h"

#include <algorithm>
#include <new>

#include "nfs/state/client_table.h"

namespace stag::nfs::state {

void CurrentClientLimits::replace(const ClientLimits& limits) {
  clients.store(limits.clients, std::memory_order_relaxed);
  clients_of_address.store(limits.clients_of_address, std::memory_order_relaxed);
  sessions.store(limits.sessions, std::memory_order_relaxed);
  shared_out.store(limits.shared_out, std::memory_order_relaxed);
}

Clients::Impl::Impl(const Options& given) : options(given), accounts(given.limits.unconfirmed) {
  for (std::uint32_t i = 0; i < kClientShards; ++i)
    shards[i] = std::make_unique<ClientShard>(i, options.epoch, options.key);
}

Clients::Clients(const Options& options) : impl_(std::make_unique<Impl>(options)) {}
Clients::~Clients() = default;

// RFC 8881 8.3: not as long as a request of it runs. One that reads, and whose connection is gone,
// does not count (Clients::keeps_no_lease()).
bool Clients::Impl::lease_ran_out(const ClientRecord& client, TimePoint now) const {
  return client.life->lapsed() || (client.life->running.load(std::memory_order_acquire) == 0 &&
                                   now - client.renewed > options.lease);
}

void Clients::Impl::settle(const Removed& removed) {
  for (const auto& client : removed.clients) {
    if (client->confirmed) {
      client->life->account->clients.fetch_sub(1, std::memory_order_relaxed);
      confirmed.fetch_sub(1, std::memory_order_relaxed);
    } else {
      accounts.remove_unconfirmed(client->address, client->id());
    }
  }
}

// Counts a client, or returns the limit that is in the way.
Limit Clients::Impl::count_client(AddressAccount& account) {
  const std::uint32_t of_address = account.clients.fetch_add(1, std::memory_order_relaxed) + 1;
  const std::uint32_t all = confirmed.fetch_add(1) + 1;
  const bool too_many_of_address =
      of_address > current.clients_of_address.load(std::memory_order_relaxed);
  const std::uint32_t limit = current.clients.load(std::memory_order_relaxed);
  const bool fits = current.shared_out.load(std::memory_order_relaxed)
                        ? leaves_enough(of_address - 1, all - 1, 1u, limit)
                        : all <= limit;
  if (!too_many_of_address && fits) return Limit::None;
  account.clients.fetch_sub(1, std::memory_order_relaxed);
  confirmed.fetch_sub(1, std::memory_order_relaxed);
  return too_many_of_address ? Limit::Address : Limit::All;
}

// An address at its own limit has none of others ended: that would make no room for it. Nor would
// the end of one that has none of what is short.
ClientId Clients::Impl::find_lapsed(const Wanted& wanted) {
  if (wanted.reached != Limit::Address && wanted.reached != Limit::All) return 0;
  for (;;) {
    const ClientId candidate = next_lapsed(wanted);
    if (candidate == 0 || has_lapsed(candidate, wanted)) return candidate;
    const BriefLock lock(lapsed_mutex);
    if (!lapsed.empty() && lapsed.back().clientid == candidate) lapsed.pop_back();
  }
}

ClientId Clients::Impl::next_lapsed(const Wanted& wanted) {
  const BriefLock lock(lapsed_mutex);
  const auto found = std::find_if(lapsed.rbegin(), lapsed.rend(), [&](const Lapsed& one) {
    return one.clientid != wanted.asks && one.has(wanted.of) && wanted.counts_for(one.account);
  });
  if (found == lapsed.rend()) return 0;
  std::swap(*found, lapsed.back());
  return lapsed.back().clientid;
}

bool Clients::Impl::has_lapsed(ClientId clientid, const Wanted& wanted) {
  ClientShard& shard = shard_of(clientid);
  const BriefLock lock(shard.mutex);
  const ClientRecord* const client = shard.find(clientid);
  return client != nullptr && client->life->lapsed() && lapsed_of(*client).has(wanted.of) &&
         wanted.counts_for(client->account.get());
}

Clients::Impl::Lapsed Clients::Impl::lapsed_of(const ClientRecord& client) {
  return {client.id(), client.account.get(), !client.sessions.empty(),
          client.life->delegations.load(std::memory_order_relaxed) != 0};
}

std::string Clients::Impl::drop_unconfirmed(ClientId clientid) {
  Removed removed;
  ClientShard& shard = shard_of(clientid);
  {
    const BriefLock lock(shard.mutex);
    ClientRecord* const client = shard.find(clientid);
    if (client == nullptr || client->confirmed) return {};
    shard.remove(*client, removed);
  }
  settle(removed);
  return removed.clients.front()->address;
}

// One that could not be counted for want of memory goes with its lease all the same.
std::string Clients::Impl::add_unconfirmed(const std::string& address, ClientId clientid) try {
  const ClientId gone = accounts.add_unconfirmed(address, clientid);
  std::string evicted = gone != 0 ? drop_unconfirmed(gone) : std::string();
  ClientShard& shard = shard_of(clientid);
  {
    const BriefLock lock(shard.mutex);
    const ClientRecord* const client = shard.find(clientid);
    if (client != nullptr && !client->confirmed) return evicted;
  }
  accounts.remove_unconfirmed(address, clientid);  // Another thread was faster.
  return evicted;
} catch (const std::bad_alloc&) {
  return {};
}

namespace {

ExchangeIdResult known(const ClientRecord& client) {
  return {Status::Ok, client.id(), client.sequence + 1, client.confirmed, client.life->protection,
          nullptr,    {}};
}

ExchangeIdResult refused(Status status) {
  ExchangeIdResult result;
  result.status = status;
  return result;
}

// Whether the principal is that of the record; of a machine credential more has to be shown (RFC
// 8881 2.4).
bool is_same(const ClientRecord& client, const ExchangeIdArgs& args) {
  return client.principal == text_of(args.principal) &&
         client.has_credential({args.principal, args.integrity});
}

// Cases 6 to 9 of RFC 8881 18.35.4.
ExchangeIdResult update(const ClientRecord* confirmed, const ExchangeIdArgs& args) {
  if (confirmed == nullptr) return refused(Status::Noent);
  if (confirmed->verifier != args.co_verifier) return refused(Status::NotSame);
  if (!is_same(*confirmed, args)) return refused(Status::Perm);
  return known(*confirmed);
}

std::unique_ptr<ClientRecord> record_of(const ExchangeIdArgs& args,
                                        std::shared_ptr<AddressAccount> account, TimePoint now) {
  auto record = std::make_unique<ClientRecord>();
  record->account = std::move(account);
  record->ownerid = text_of(args.co_ownerid);
  record->verifier = args.co_verifier;
  record->principal = text_of(args.principal);
  record->address = args.address;
  record->minor = args.minor;
  record->renewed = now;
  return record;
}

}  // namespace

ExchangeIdResult Clients::exchange_id(const ExchangeIdArgs& args, TimePoint now) {
  const std::string address(args.address);
  auto record = record_of(args, impl_->accounts.join(address), now);
  ExchangeIdResult result;
  Removed removed;
  ClientShard& shard = impl_->shard_of_owner(args.co_ownerid);
  {
    const BriefLock lock(shard.mutex);
    const auto [confirmed, unconfirmed] = shard.find(record->ownerid);
    if (args.update) return update(confirmed, args);
    bool replaces = false;  // case 3: the confirmed record is worth nothing
    if (confirmed != nullptr && !is_same(*confirmed, args)) {
      if (confirmed->has_state() && !impl_->lease_ran_out(*confirmed, now))
        return refused(Status::ClidInuse);
      replaces = true;
    }
    // Case 4; and the last one that asks decides which incarnation may be confirmed.
    if (unconfirmed != nullptr) shard.remove(*unconfirmed, removed);
    if (confirmed != nullptr && !replaces && confirmed->verifier == args.co_verifier) {
      result = known(*confirmed);  // case 2
    } else {                       // cases 1, 3, 4, 5
      result.clientid = shard.add(std::move(record), args.protection);
      result.protection = args.protection;
      result.sequenceid = 1;
    }
    // Nothing fails once it has ended, or nobody would hear that it is to be released.
    if (replaces) {
      result.ended = confirmed->life;
      shard.remove(*confirmed, removed);
    }
  }
  impl_->settle(removed);
  if (!result.confirmed) result.evicted = impl_->add_unconfirmed(address, result.clientid);
  return result;
}

Status Clients::check_credential(ClientId clientid, const Asker& asker) const {
  const ClientShard& shard = impl_->shard_of(clientid);
  const BriefLock lock(shard.mutex);
  const ClientRecord* const client = shard.find(clientid);
  return client == nullptr || client->has_credential(asker) ? Status::Ok : Status::WrongCred;
}

Status Clients::destroy_clientid(ClientId clientid, LifePtr& ended) {
  Removed removed;
  ClientShard& shard = impl_->shard_of(clientid);
  {
    const BriefLock lock(shard.mutex);
    ClientRecord* const client = shard.find(clientid);
    if (client == nullptr || client->without_sessions) return Status::StaleClientid;
    if (client->has_state() && !client->life->lapsed()) return Status::ClientidBusy;
    ended = client->life;
    shard.remove(*client, removed);
  }
  impl_->settle(removed);
  return Status::Ok;
}

LifePtr Clients::end(ClientId clientid, bool lapsed_only) {
  Removed removed;
  LifePtr life;
  ClientShard& shard = impl_->shard_of(clientid);
  {
    const BriefLock lock(shard.mutex);
    ClientRecord* const client = shard.find(clientid);
    if (client == nullptr || (lapsed_only && !client->life->lapsed())) return nullptr;
    life = client->life;
    shard.remove(*client, removed);
  }
  impl_->settle(removed);
  return life;
}

void Clients::Impl::Expired::make_room(std::size_t clients) {
  ended.reserve(ended.size() + clients);
  lapsed.reserve(lapsed.size() + clients);
  lapsed_just_now.reserve(lapsed_just_now.size() + clients);
}

// All of those in this shard or, where memory runs out, none: each is told of as having just lapsed
// once.
void Clients::Impl::expire(ClientShard& shard, TimePoint now, Expired& expired) {
  Removed removed;
  {
    const BriefLock lock(shard.mutex);
    std::vector<ClientRecord*> over;
    std::size_t sessions = 0;
    for (const auto& [id, client] : shard.all()) {
      if (!lease_ran_out(*client, now)) continue;
      over.push_back(client.get());
      sessions += client->sessions.size();
    }
    expired.make_room(over.size());
    removed.clients.reserve(over.size());
    removed.sessions.reserve(sessions);
    for (ClientRecord* const client : over) {
      if (client->life->states.load(std::memory_order_acquire) != 0) {
        lapse(*client, now, expired);
        continue;
      }
      shard.remove(*client, removed);
      if (client->confirmed) expired.ended.push_back(client->life);
    }
  }
  settle(removed);
}

void Clients::change_courtesy(Duration courtesy) {
  impl_->courtesy.store(courtesy, std::memory_order_relaxed);
}

void Clients::change_limits(const ClientLimits& limits) {
  impl_->current.replace(limits);
  impl_->accounts.limit_unconfirmed(limits.unconfirmed);
}

void Clients::Impl::lapse(ClientRecord& client, TimePoint now, Expired& expired) const {
  const LifePtr& life = client.life;
  expired.lapsed.push_back(lapsed_of(client));
  if (!life->lapsed()) expired.lapsed_just_now.push_back(life);
  life->phase.store(Life::Phase::Lapsed, std::memory_order_release);
  const bool wanted = life->wanted.load() != EndedFor::TimeOver;
  if (wanted || now - client.renewed > options.lease + courtesy.load(std::memory_order_relaxed))
    expired.ended.push_back(life);
}

std::vector<LifePtr> Clients::expire(TimePoint now, std::vector<LifePtr>* lapsed) {
  Impl::Expired expired;
  for (const auto& shard : impl_->shards) {
    try {
      impl_->expire(*shard, now, expired);
    } catch (const std::bad_alloc&) {
      // The next time. What the other shards had is in `expired` alone, and must not be lost.
    }
  }
  {
    const BriefLock lock(impl_->lapsed_mutex);
    impl_->lapsed.swap(expired.lapsed);
  }
  impl_->accounts.sweep();
  if (lapsed != nullptr) *lapsed = std::move(expired.lapsed_just_now);
  return std::move(expired.ended);
}

ClientId Clients::find_lapsed(Limit reached, Shortage of, const Life& asks) const {
  return impl_->find_lapsed({reached, of, *asks.account, asks.clientid});
}

bool Clients::any_confirmed() const {
  return impl_->confirmed.load() != 0;
}

Status Clients::reclaim_complete(Life& life) {
  const bool again = life.reclaim_complete.exchange(true);
  const bool claims = life.may_reclaim.exchange(false);
  return again && !claims ? Status::CompleteAlready : Status::Ok;
}

LifePtr Clients::life(ClientId clientid) const {
  ClientShard& shard = impl_->shard_of(clientid);
  const BriefLock lock(shard.mutex);
  const ClientRecord* const client = shard.find(clientid);
  return client == nullptr ? nullptr : client->life;
}

std::optional<Clients::Identity> Clients::identity(ClientId clientid) const {
  ClientShard& shard = impl_->shard_of(clientid);
  const BriefLock lock(shard.mutex);
  const ClientRecord* const client = shard.find(clientid);
  if (client == nullptr) return std::nullopt;
  return Identity{client->ownerid, client->principal, client->address};
}

}  // namespace stag::nfs::state
