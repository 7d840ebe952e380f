// Client IDs of NFSv4.0 (RFC 7530 16.33 to 16.35): without sessions, confirmed by a verifier.
#include <algorithm>

#include "nfs/state/client_table.h"

namespace stag::nfs::state {
namespace {

std::string ownerid_of(Bytes id) {
  return std::string(kOwnerWithoutSessions) + std::string(text_of(id));
}

std::unique_ptr<ClientRecord> record_without_sessions(const SetClientIdArgs& args,
                                                      std::shared_ptr<AddressAccount> account,
                                                      TimePoint now) {
  auto record = std::make_unique<ClientRecord>();
  record->account = std::move(account);
  record->ownerid = ownerid_of(args.id);
  record->verifier = args.verifier;
  record->principal = text_of(args.principal);
  record->address = args.address;
  record->without_sessions = true;
  record->callback_path = args.callback_path;
  record->renewed = now;
  return record;
}

// SETCLIENTID shows no machine credential: who is protected by one is another client, though name
// and principal are the same.
bool is_same(const ClientRecord& confirmed, const ClientRecord& asks) {
  return confirmed.principal == asks.principal && !confirmed.life->protection.machine_credential;
}

}  // namespace

// Another one each time, and nobody can guess it.
Verifier Clients::Impl::next_confirm() {
  const std::uint64_t count = confirms.fetch_add(1, std::memory_order_relaxed) + 1;
  SipHash hash(options.key);
  hash.add(bytes_of("SETCLIENTID_CONFIRM"));
  hash.add(std::as_bytes(std::span(&count, 1)));
  Verifier verifier{};
  store_be(verifier.data(), hash.finish());
  return verifier;
}

SetClientIdResult Clients::set_clientid(const SetClientIdArgs& args, TimePoint now) {
  const std::string address(args.address);
  auto record = record_without_sessions(args, impl_->accounts.join(address), now);
  SetClientIdResult result;
  result.confirm = impl_->next_confirm();
  CallbackPathPtr path = args.callback_path;  // What it replaces is freed without the lock.
  Removed removed;
  bool made = false;
  ClientShard& shard = impl_->shard_of_owner(bytes_of(record->ownerid));
  {
    const BriefLock lock(shard.mutex);
    const auto [confirmed, unconfirmed] = shard.find(record->ownerid);
    bool same = false;  // the callback changes, nothing else
    ClientRecord* replaced = nullptr;
    if (confirmed != nullptr && !is_same(*confirmed, *record)) {
      if (confirmed->has_state() && !impl_->lease_ran_out(*confirmed, now))
        return {Status::ClidInuse, 0, {}, {}, {}};
      replaced = confirmed;
    } else if (confirmed != nullptr) {
      same = confirmed->verifier == args.verifier;
    }
    if (unconfirmed != nullptr) shard.remove(*unconfirmed, removed);
    if (same) {
      confirmed->confirm_change = result.confirm;
      std::swap(confirmed->callback_change, path);
      result.clientid = confirmed->id();
    } else {
      record->confirm = result.confirm;
      result.clientid = shard.add(std::move(record));
      shard.find(result.clientid)->life->without_sessions = true;
      made = true;
    }
    // As in exchange_id().
    if (replaced != nullptr) {
      result.ended = replaced->life;
      shard.remove(*replaced, removed);
    }
  }
  impl_->settle(removed);
  if (made) result.evicted = impl_->add_unconfirmed(address, result.clientid);
  return result;
}

ConfirmResult Clients::confirm_clientid(ClientId clientid, const Verifier& confirm, Bytes principal,
                                        TimePoint now) {
  ConfirmResult result;
  Removed removed;
  std::string address;
  std::shared_ptr<AddressAccount> account;
  CallbackPathPtr former;  // freed without the lock
  ClientShard& shard = impl_->shard_of(clientid);
  {
    const BriefLock lock(shard.mutex);
    ClientRecord* const client = shard.find(clientid);
    if (client == nullptr || !client->without_sessions) return {Status::StaleClientid, {}, 0, {}};
    if (client->principal != text_of(principal)) return {Status::ClidInuse, {}, 0, {}};
    if (client->confirm_change == confirm) {
      client->confirm = confirm;
      client->confirm_change.reset();
      former = std::exchange(client->callback_path, std::move(client->callback_change));
    }
    if (client->confirm != confirm) return {Status::StaleClientid, {}, 0, {}};
    if (client->confirmed) return result;
    address = client->address;
    account = client->account;
    result.limit = impl_->confirm(shard, *client, result.ended, removed);
    if (result.limit != Limit::None) result.status = Status::Delay;
    client->renew(now);
  }
  impl_->settle(removed);
  if (result.limit == Limit::None)
    impl_->accounts.remove_unconfirmed(address, clientid);
  else
    result.lapsed = impl_->find_lapsed({result.limit, Shortage::Clients, *account, clientid});
  return result;
}

RenewResult Clients::renew_lease(ClientId clientid, TimePoint now) {
  ClientShard& shard = impl_->shard_of(clientid);
  const BriefLock lock(shard.mutex);
  ClientRecord* const client = shard.find(clientid);
  if (client == nullptr) {
    return {shard.knew(clientid) ? Status::Expired : Status::StaleClientid, nullptr};
  }
  if (!client->confirmed || !client->without_sessions) return {Status::StaleClientid, nullptr};
  client->renew(now);
  return {Status::Ok, client->life};
}

}  // namespace stag::nfs::state
