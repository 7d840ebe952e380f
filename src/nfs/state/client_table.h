// Where Clients keeps its records: 64 shards by client owner. A client ID and a session ID say
// which; a client found through either is found under one lock.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/brief_mutex.h"
#include "nfs/state/accounts.h"
#include "nfs/state/client_ids.h"
#include "nfs/state/clients.h"
#include "nfs/state/session.h"

namespace stag::nfs::state {

// The 5-tuple of RFC 8881 18.35.4, with its sessions.
struct ClientRecord {
  LifePtr life;
  std::shared_ptr<AddressAccount> account;
  std::string ownerid;
  Verifier verifier{};
  std::string principal;
  std::string address;
  bool confirmed = false;
  std::uint32_t minor = 0;
  // Of version 4.0: what SETCLIENTID_CONFIRM must say, and what it said when it changes the
  // callback.
  bool without_sessions = false;
  Verifier confirm{};
  std::optional<Verifier> confirm_change;
  CallbackPathPtr callback_path;    // may be null
  CallbackPathPtr callback_change;  // goes with confirm_change
  TimePoint renewed;                // the lease; of an unconfirmed one, made
  // The CREATE_SESSION reply cache (RFC 8881 18.36.4): its number, and what was answered.
  SequenceId sequence = 0;
  struct Created {
    SessionId sessionid{};
    bool back_channel = false;
    ChannelAttributes fore, back;
  };
  std::optional<Created> created;
  Status refused = Status::Ok;          // in place of that
  std::vector<std::uint32_t> sessions;  // places

  ClientId id() const { return life->clientid; }
  // A client that lapsed and comes back before another wanted what it holds has lost nothing.
  void renew(TimePoint now) {
    renewed = std::max(renewed, now);
    if (!life->lapsed()) return;
    life->wanted.store(EndedFor::TimeOver);
    life->phase.store(Life::Phase::Active, std::memory_order_release);
  }
  bool has_state() const {
    return !sessions.empty() || life->states.load(std::memory_order_acquire) != 0;
  }
  // Whether `asker` may maintain this client ID where it is protected (RFC 8881 2.10.8.3).
  bool has_credential(const Asker& asker) const {
    return !life->protection.machine_credential ||
           (asker.integrity && principal == text_of(asker.principal));
  }
};

// What was taken out of a shard under its lock. Freed outside; who waits for its slots is called.
struct Removed {
  std::vector<std::unique_ptr<ClientRecord>> clients;
  std::vector<std::unique_ptr<Session>> sessions;

  Removed() = default;
  Removed(const Removed&) = delete;
  Removed& operator=(const Removed&) = delete;
  ~Removed();
};

class ClientShard {
 public:
  struct ByOwner {
    ClientRecord* confirmed = nullptr;
    ClientRecord* unconfirmed = nullptr;
  };

  ClientShard(std::uint32_t number, std::uint32_t epoch, const SipKey& key)
      : number_(number),
        epoch_(epoch),
        key_(key),
        owners_(8, OwnerHash{&key_}),
        ids_(number, epoch, key) {}

  mutable BriefMutex mutex;
  // The rest with the mutex held.
  ClientRecord* find(ClientId clientid) const;
  ByOwner find(const std::string& ownerid) const;
  Session* find(const SessionId& sessionid) const;
  // Whether there was such a client since the server started.
  bool knew(ClientId clientid) const { return ids_.given(clientid); }

  const Session& session_at(std::uint32_t place) const { return *sessions_[place]; }

  // Unconfirmed; no other unconfirmed one has this owner. Gives it its Life.
  ClientId add(std::unique_ptr<ClientRecord> record, const StateProtection& protection = {});
  // There is no confirmed one of this owner.
  void confirm(ClientRecord& client);
  // Memory for one more session, so that add() needs none.
  void make_place(ClientRecord& client);
  SessionId add(std::unique_ptr<Session> session);
  // Ends its Life; `removed` gets what is left.
  void remove(ClientRecord& client, Removed& removed);
  void remove(Session& session, Removed& removed);

  const std::unordered_map<ClientId, std::unique_ptr<ClientRecord>>& all() const {
    return clients_;
  }

 private:
  struct OwnerHash {
    const SipKey* key;
    std::size_t operator()(const std::string& ownerid) const {
      return siphash(*key, bytes_of(ownerid));
    }
  };
  SessionId next_session_id(std::uint32_t place);

  const std::uint32_t number_;
  const std::uint32_t epoch_;
  const SipKey key_;
  std::unordered_map<ClientId, std::unique_ptr<ClientRecord>> clients_;
  std::unordered_map<std::string, ByOwner, OwnerHash> owners_;
  std::vector<std::unique_ptr<Session>> sessions_;
  std::vector<std::uint32_t> free_places_;
  ClientIds ids_;
  std::uint64_t last_session_ = 0;
};

inline constexpr std::uint32_t kClientShards = Clients::kShards;

// In line: SEQUENCE and the end of each request look there.
inline Session* ClientShard::find(const SessionId& sessionid) const {
  const std::uint32_t place = load_be<std::uint32_t>(sessionid.data() + 4) / kClientShards;
  if (place >= sessions_.size()) return nullptr;
  Session* const session = sessions_[place].get();
  if (session == nullptr) return nullptr;
  return std::memcmp(session->id.data(), sessionid.data(), sessionid.size()) == 0 ? session
                                                                                  : nullptr;
}

// Those of ClientLimits that are compared while Clients::change_limits() replaces them. In
// Options::limits they stay as they were at the start.
struct CurrentClientLimits {
  explicit CurrentClientLimits(const ClientLimits& limits) { replace(limits); }
  void replace(const ClientLimits& limits);

  std::atomic<std::uint32_t> clients, clients_of_address, sessions;
  std::atomic<bool> shared_out;
};

struct Clients::Impl {
  explicit Impl(const Options& options);

  ClientShard& shard_of(ClientId clientid) { return *shards[clientid % kClientShards]; }
  ClientShard& shard_of(const SessionId& sessionid) {
    return *shards[load_be<std::uint32_t>(sessionid.data() + 4) % kClientShards];
  }
  ClientShard& shard_of_owner(Bytes ownerid) {
    return *shards[siphash(options.key, ownerid) % kClientShards];
  }

  bool lease_ran_out(const ClientRecord& client, TimePoint now) const;
  // Of a request whose session, null where that is gone, is of this shard.
  static void stop_keeping_lease(const ClientShard& shard, const Session* session, Life& life,
                                 TimePoint now);
  // What a client that was removed leaves behind in counters and accounts; without any lock.
  void settle(const Removed& removed);
  // Of what a client wants for the fore channel, what there is room for in the caches.
  ChannelAttributes grant(const ChannelAttributes& wanted, const AddressAccount& account,
                          const CacheUse& returning) const;
  // What the incarnation takes that `client` replaces once it is confirmed.
  static CacheUse replaced_by(const ClientShard& shard, const ClientRecord& client);
  Limit count_client(AddressAccount& account);
  // Which lapsed client's end makes room.
  struct Wanted {
    Limit reached = Limit::None;
    Shortage of = Shortage::Clients;
    const AddressAccount& account;  // of the client that asks
    ClientId asks = 0;
    bool counts_for(const AddressAccount* other) const {
      return reached != Limit::Address || other == &account;
    }
  };
  ClientId find_lapsed(const Wanted& wanted);
  // The next one to look at, which stands at the end of `lapsed` from now on.
  ClientId next_lapsed(const Wanted& wanted);
  bool has_lapsed(ClientId clientid, const Wanted& wanted);
  Status judge(const ClientRecord* client, const CreateSessionArgs& args) const;
  std::optional<CreateSessionResult> answer(ClientRecord* client,
                                            const CreateSessionArgs& args) const;
  CreateSessionResult create(const CreateSessionArgs& args, const ChannelAttributes& fore,
                             CacheShare share, TimePoint now);
  Limit confirm(ClientShard& shard, ClientRecord& client, LifePtr& ended, Removed& removed);
  Verifier next_confirm();
  static CreateSessionResult replay(const ClientRecord& client);
  bool too_small(const CreateSessionArgs& args) const;
  static std::uint32_t status_flags(const Session& session, const ClientShard& shard);
  // Yields the address of one that went instead; empty: nobody did.
  std::string add_unconfirmed(const std::string& address, ClientId clientid);
  std::string drop_unconfirmed(ClientId clientid);
  struct Lapsed {
    ClientId clientid = 0;
    const AddressAccount* account = nullptr;  // only compared
    // What it holds besides its place and its states.
    bool has_sessions = false;
    bool has_delegations = false;
    bool has(Shortage of) const {
      if (of == Shortage::Caches) return has_sessions;
      return of != Shortage::Delegations || has_delegations;
    }
  };
  static Lapsed lapsed_of(const ClientRecord& client);
  struct Expired {
    std::vector<LifePtr> ended;
    std::vector<Lapsed> lapsed;
    std::vector<LifePtr> lapsed_just_now;  // of these
    // Memory for so many more clients.
    void make_room(std::size_t clients);
  };
  void expire(ClientShard& shard, TimePoint now, Expired& expired);
  void lapse(ClientRecord& client, TimePoint now, Expired& expired) const;

  const Options options;
  std::atomic<Duration> courtesy = options.courtesy;
  CurrentClientLimits current{options.limits};
  Accounts accounts;
  std::atomic<std::uint32_t> confirmed{0};
  std::atomic<std::uint64_t> cache_used{0};
  std::atomic<std::uint64_t> confirms{0};  // made, of version 4.0
  std::array<std::unique_ptr<ClientShard>, kClientShards> shards;
  // So that who is refused does not have all clients looked through.
  BriefMutex lapsed_mutex;
  std::vector<Lapsed> lapsed;
};

}  // namespace stag::nfs::state
