#include <algorithm>

#include "nfs/state/client_table.h"
#include "nfs/state/clients.h"

namespace stag::nfs::state {
namespace {

// For the fore channel every value may be lowered (RFC 8881 18.36.3).
ChannelAttributes lower(const ChannelAttributes& wanted, const ChannelAttributes& most) {
  ChannelAttributes granted;
  granted.max_request_size = std::min(wanted.max_request_size, most.max_request_size);
  granted.max_response_size = std::min(wanted.max_response_size, most.max_response_size);
  granted.max_response_size_cached = std::min(
      {wanted.max_response_size_cached, most.max_response_size_cached, granted.max_response_size});
  granted.max_operations = std::min(wanted.max_operations, most.max_operations);
  granted.max_requests = std::clamp(wanted.max_requests, 1u, most.max_requests);
  return granted;
}

// For the back channel operations and requests are the client's to say.
ChannelAttributes lower_back(const ChannelAttributes& wanted, const ChannelAttributes& most) {
  ChannelAttributes granted = lower(wanted, most);
  granted.max_operations = wanted.max_operations;
  granted.max_requests = wanted.max_requests;
  return granted;
}

CreateSessionResult refused(Status status, Limit limit) {
  CreateSessionResult result;
  result.status = status;
  result.limit = limit;
  return result;
}

// Of what judge() says.
Limit limit_of(Status status) {
  return status == Status::Nospc ? Limit::Client : Limit::None;
}

std::uint64_t without(std::uint64_t bytes, std::uint64_t returning) {
  return bytes > returning ? bytes - returning : 0;
}

}  // namespace

// A session gets an eighth of what is free beyond four times what its address has already and
// beyond a quarter of all. That quarter is for those who find nothing else: one small slot each, so
// that many thousand clients find room. CacheShare keeps an address from taking it from the others.
ChannelAttributes Clients::Impl::grant(const ChannelAttributes& wanted,
                                       const AddressAccount& account,
                                       const CacheUse& returning) const {
  ChannelAttributes granted = lower(wanted, options.limits.fore);
  const std::uint64_t used = std::min(
      without(cache_used.load(std::memory_order_relaxed), returning.of_all), options.limits.caches);
  const std::uint64_t free = options.limits.caches - used;
  const std::uint64_t kept =
      options.limits.caches / 4 +
      4 * without(account.cache.load(std::memory_order_relaxed), returning.of_address);
  const std::uint64_t share = free > kept ? (free - kept) / 8 : 0;
  while (Session::cost_of(granted) > share && granted.max_requests > 1) granted.max_requests /= 2;
  if (Session::cost_of(granted) > share)
    granted.max_response_size_cached =
        std::min(granted.max_response_size_cached, kLeastCachedReply);
  return granted;
}

CacheUse Clients::Impl::replaced_by(const ClientShard& shard, const ClientRecord& client) {
  CacheUse use;
  const ClientRecord* const old = client.confirmed ? nullptr : shard.find(client.ownerid).confirmed;
  if (old == nullptr) return use;
  for (const std::uint32_t place : old->sessions)
    use.of_all += Session::cost_of(shard.session_at(place).fore());
  if (old->account == client.account) use.of_address = use.of_all;
  return use;
}

bool Clients::Impl::too_small(const CreateSessionArgs& args) const {
  const ClientLimits& limits = options.limits;
  return args.fore.max_request_size < limits.min_request_size ||
         args.fore.max_response_size < limits.min_response_size ||
         (args.connection_back_channel && (args.back.max_request_size < limits.min_callback_size ||
                                           args.back.max_response_size < limits.min_callback_size));
}

// The phases of RFC 8881 18.36.4 up to session creation. The principal is compared before the
// sequence: no other client may use up a client's numbers. Ok: it is next, or a retry.
Status Clients::Impl::judge(const ClientRecord* client, const CreateSessionArgs& args) const {
  if (client == nullptr || client->without_sessions) return Status::StaleClientid;
  if (!client->has_credential({args.principal, args.integrity})) return Status::WrongCred;
  if (client->principal != text_of(args.principal)) return Status::ClidInuse;
  if (args.sequence == client->sequence) {
    const bool answered = client->created || client->refused != Status::Ok;
    return answered ? Status::Ok : Status::SeqMisordered;
  }
  if (args.sequence != client->sequence + 1) return Status::SeqMisordered;
  if (too_small(args)) return Status::Toosmall;
  if (client->sessions.size() >= current.sessions.load(std::memory_order_relaxed))
    return Status::Nospc;
  return Status::Ok;
}

// What is answered without a session being made; nullopt: one may be. The sequence is set in phase
// 2, so a refusal in the next ones counts, and a retry gets it again.
std::optional<CreateSessionResult> Clients::Impl::answer(ClientRecord* client,
                                                         const CreateSessionArgs& args) const {
  const Status status = judge(client, args);
  if (status == Status::Toosmall || status == Status::Nospc) {
    client->sequence = args.sequence;
    client->created.reset();
    client->refused = status;
  }
  if (status != Status::Ok) return refused(status, limit_of(status));
  if (args.sequence == client->sequence) return replay(*client);
  return std::nullopt;
}

CreateSessionResult Clients::create_session(const CreateSessionArgs& args, TimePoint now) {
  ClientShard& shard = impl_->shard_of(args.clientid);
  std::shared_ptr<AddressAccount> account;
  CacheUse returning;
  {
    const BriefLock lock(shard.mutex);
    ClientRecord* const client = shard.find(args.clientid);
    if (auto answered = impl_->answer(client, args)) return *std::move(answered);
    account = client->account;
    returning = impl_->replaced_by(shard, *client);
  }
  const ChannelAttributes fore = impl_->grant(args.fore, *account, returning);
  const std::uint64_t all = impl_->options.limits.caches, cost = Session::cost_of(fore);
  auto share = CacheShare::take(impl_->cache_used, all, account, cost, returning);
  CreateSessionResult result;
  if (share) {
    result = impl_->create(args, fore, std::move(*share), now);
  } else {
    const std::uint64_t of_address = account->cache.load(std::memory_order_relaxed) + cost;
    const bool at_its_share = of_address > all / 4 + returning.of_address;
    result = refused(Status::Delay, at_its_share ? Limit::Address : Limit::All);
    result.caches_full = true;
  }
  const Shortage of = result.caches_full ? Shortage::Caches : Shortage::Clients;
  result.lapsed = impl_->find_lapsed({result.limit, of, *account, args.clientid});
  return result;
}

CreateSessionResult Clients::Impl::replay(const ClientRecord& client) {
  CreateSessionResult result = refused(client.refused, limit_of(client.refused));
  result.replay = true;
  if (client.refused != Status::Ok) return result;
  result.sequence = client.sequence;
  result.sessionid = client.created->sessionid;
  result.back_channel = client.created->back_channel;
  result.fore = client.created->fore;
  result.back = client.created->back;
  result.life = client.life;
  return result;
}

// The client may have changed since it was looked at. Memory comes first: after confirm() nothing
// fails.
CreateSessionResult Clients::Impl::create(const CreateSessionArgs& args,
                                          const ChannelAttributes& fore, CacheShare share,
                                          TimePoint now) {
  CreateSessionResult result;
  Removed removed;
  std::string address;
  ClientShard& shard = shard_of(args.clientid);
  {
    const BriefLock lock(shard.mutex);
    ClientRecord* const client = shard.find(args.clientid);
    if (auto answered = answer(client, args)) return *std::move(answered);
    auto session = std::make_unique<Session>(*client, fore, std::move(share));
    if (args.connection != 0) {
      const std::uint32_t asked = args.connection_back_channel ? channel::kBoth : channel::kFore;
      const BindResult bound = session->bind(args.connection, asked, channel::kFore, args.callbacks,
                                             options.limits.connections);
      result.back_channel = (bound.directions & channel::kBack) != 0;
    }
    session->callback_path = args.callback_path;
    shard.make_place(*client);
    address = client->address;
    result.confirmed = !client->confirmed;
    if (result.confirmed) result.limit = confirm(shard, *client, result.ended, removed);
    if (result.limit != Limit::None) {
      result.status = Status::Delay;
      return result;
    }
    result.sessionid = shard.add(std::move(session));
    result.sequence = client->sequence = args.sequence;
    result.fore = fore;
    result.back = lower_back(args.back, options.limits.fore);
    client->renew(now);
    client->created = {result.sessionid, result.back_channel, result.fore, result.back};
    client->refused = Status::Ok;
    result.life = client->life;
  }
  settle(removed);
  if (result.confirmed) accounts.remove_unconfirmed(address, args.clientid);
  return result;
}

// RFC 8881 18.36.4, phase 3: the record replaces the confirmed one of its owner, whose principal is
// the same (EXCHANGE_ID sees to that). None, or why there are too many clients.
Limit Clients::Impl::confirm(ClientShard& shard, ClientRecord& client, LifePtr& ended,
                             Removed& removed) {
  ClientRecord* const old = shard.find(client.ownerid).confirmed;
  if (old != nullptr) {
    shard.remove(*old, removed);
    ended = old->life;
    client.account->clients.fetch_add(1, std::memory_order_relaxed);
    confirmed.fetch_add(1, std::memory_order_relaxed);
  } else if (const Limit limit = count_client(*client.account); limit != Limit::None) {
    return limit;
  }
  shard.confirm(client);
  return Limit::None;
}

Status Clients::check_credential(const SessionId& sessionid, const Asker& asker) const {
  const ClientShard& shard = impl_->shard_of(sessionid);
  const BriefLock lock(shard.mutex);
  const Session* const session = shard.find(sessionid);
  return session == nullptr || session->client().has_credential(asker) ? Status::Ok
                                                                       : Status::WrongCred;
}

Status Clients::destroy_session(const SessionId& sessionid, ConnectionId connection) {
  Removed removed;
  ClientShard& shard = impl_->shard_of(sessionid);
  {
    const BriefLock lock(shard.mutex);
    Session* const session = shard.find(sessionid);
    if (session == nullptr) return Status::BadSession;
    if (connection != kNoConnection && !session->is_associated_with(connection))
      return Status::ConnNotBoundToSession;
    shard.remove(*session, removed);
  }
  impl_->settle(removed);
  return Status::Ok;
}

BindResult Clients::bind_connection(const SessionId& sessionid, ConnectionId connection,
                                    std::uint32_t asked, std::uint32_t required,
                                    const CallbackConnection& callbacks) {
  ClientShard& shard = impl_->shard_of(sessionid);
  const BriefLock lock(shard.mutex);
  Session* const session = shard.find(sessionid);
  if (session == nullptr) return {Status::BadSession, 0};
  return session->bind(connection, asked, required, callbacks, impl_->options.limits.connections);
}

void Clients::unbind_back_channel(const SessionId& sessionid, ConnectionId connection) {
  ClientShard& shard = impl_->shard_of(sessionid);
  const BriefLock lock(shard.mutex);
  if (Session* const session = shard.find(sessionid)) session->unbind_back(connection);
}

std::vector<Clients::BackChannel> Clients::back_channels(const SessionId& sessionid) const {
  ClientShard& shard = impl_->shard_of(sessionid);
  const BriefLock lock(shard.mutex);
  const Session* const session = shard.find(sessionid);
  return session == nullptr ? std::vector<BackChannel>() : session->back_channels();
}

CallbackPathPtr Clients::callback_path(const SessionId& sessionid) const {
  ClientShard& shard = impl_->shard_of(sessionid);
  const BriefLock lock(shard.mutex);
  const Session* const session = shard.find(sessionid);
  return session == nullptr ? nullptr : session->callback_path;
}

std::vector<std::pair<SessionId, CallbackPathPtr>> Clients::callback_paths(
    ClientId clientid) const {
  std::vector<std::pair<SessionId, CallbackPathPtr>> paths;
  // A client that had more before the limit was lowered has the vector grow.
  paths.reserve(impl_->current.sessions.load(std::memory_order_relaxed));
  ClientShard& shard = impl_->shard_of(clientid);
  const BriefLock lock(shard.mutex);
  const ClientRecord* const client = shard.find(clientid);
  if (client == nullptr || !client->confirmed) return paths;
  if (client->callback_path != nullptr) paths.emplace_back(SessionId{}, client->callback_path);
  for (const std::uint32_t place : client->sessions)
    if (const Session& session = shard.session_at(place); session.callback_path != nullptr)
      paths.emplace_back(session.id, session.callback_path);
  return paths;
}

void Clients::backchannel_fault(const SessionId& sessionid) {
  ClientShard& shard = impl_->shard_of(sessionid);
  const BriefLock lock(shard.mutex);
  if (Session* const session = shard.find(sessionid)) session->backchannel_fault = true;
}

}  // namespace stag::nfs::state
