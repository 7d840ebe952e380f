// Client IDs, leases, sessions and their slots (RFC 8881 2.4, 2.10, 8.3 and the operations 18.34 to
// 18.37, 18.46, 18.50): who may ask, and whether this was asked before.
//
// Pure: no clock, thread or protocol; `now` is an argument, chance is the key. Every function may
// be called from any thread. A client, its sessions and their slots are in one of 64 shards; no
// function holds two locks, and none is held while callbacks run or replies are freed.
//
// Of a request that Run was returned for, finished() is due on every exit, whatever happened to its
// session or client meanwhile. In the steady state sequence() and finished() allocate nothing.
//
// A client ends by a new incarnation, DESTROY_CLIENTID, expiry or an administrator. Its Life is
// Ended from then on; the caller that gets the LifePtr back gives it to Files::release().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/loop.h"
#include "base/siphash.h"
#include "base/unique_function.h"
#include "nfs/state/types.h"

namespace stag::nfs::state {

// channel_attrs4, without the RDMA read depth, which is the transport's.
struct ChannelAttributes {
  std::uint32_t header_pad_size = 0;
  std::uint32_t max_request_size = 0;
  std::uint32_t max_response_size = 0;
  std::uint32_t max_response_size_cached = 0;
  std::uint32_t max_operations = 0;
  std::uint32_t max_requests = 0;  // slots
  friend bool operator==(const ChannelAttributes&, const ChannelAttributes&) = default;
};

// Which way requests go on a connection; the values are those of channel_dir_from_server4.
namespace channel {
inline constexpr std::uint32_t kFore = 1;
inline constexpr std::uint32_t kBack = 2;
inline constexpr std::uint32_t kBoth = 3;
}  // namespace channel

// One connection that can carry callbacks, as the protocol layer knows it; it expires with the
// connection, and an expired one is as good as none.
using CallbackConnection = std::weak_ptr<void>;

// What the protocol layer keeps with a session to call its client. It derives from it.
class CallbackPath {
 public:
  virtual ~CallbackPath() = default;
};
using CallbackPathPtr = std::shared_ptr<CallbackPath>;

// Of ca_maxresponsesize_cached, what every session gets that asks for as much: a LOCK that is
// denied names an owner of up to 1024 bytes (RFC 8881 18.10), and stands behind SEQUENCE and PUTFH.
inline constexpr std::uint32_t kLeastCachedReply = 1280;

// While clients are served, Clients::change_limits() replaces those from `clients` to `sessions`.
struct ClientLimits {
  std::uint32_t clients = 16384;            // confirmed
  std::uint32_t clients_of_address = 4096;  // of these
  bool shared_out = true;                   // leaves_enough() is asked of them, too
  std::uint32_t unconfirmed = 1024;         // beyond: the oldest of the address that has most goes
  std::uint32_t sessions = 16;              // of a client
  std::uint32_t connections = 16;           // of a session, that are remembered
  std::uint32_t retries_waiting = 8;        // of a slot
  std::uint64_t caches = 96 << 20;          // bytes, of all slots; a quarter is one for each client
  // The most that is granted; slots and cached size shrink as `caches` fills.
  ChannelAttributes fore{0, (1 << 20) + 4096, (1 << 20) + 4096, 4096, 64, 64};
  // The least a client may ask for, else TOOSMALL.
  std::uint32_t min_request_size = 128;
  std::uint32_t min_response_size = 128;
  std::uint32_t min_callback_size = 256;
};

// The results of a COMPOUND as a slot keeps them. The protocol layer derives from it.
class Reply {
 public:
  virtual ~Reply() = default;
};
using ReplyPtr = std::shared_ptr<const Reply>;

struct ExchangeIdArgs {
  Bytes co_ownerid;
  Verifier co_verifier{};
  Bytes principal;           // as in Asker
  std::string_view address;  // without port: whose limits count
  bool update = false;       // EXCHGID4_FLAG_UPD_CONFIRMED_REC_A
  std::uint32_t minor = 1;   // the minor version that it speaks; only shown
  bool integrity = false;    // as in Asker
  StateProtection protection{};
};
struct ExchangeIdResult {
  Status status = Status::Ok;  // ClidInuse, Noent, NotSame, Perm, Delay
  ClientId clientid = 0;
  SequenceId sequenceid = 0;
  bool confirmed = false;        // EXCHGID4_FLAG_CONFIRMED_R
  StateProtection protection{};  // which a client that is known keeps
  // A client that ended by this; may be null.
  LifePtr ended;
  // Where a client was that went for this one, because too many are not confirmed; empty: nobody.
  std::string evicted{};
};

// How the co_ownerid of a client of version 4.0 begins. No client of a later version calls itself
// like that, except on purpose.
inline constexpr std::string_view kOwnerWithoutSessions = "SETCLIENTID:";

// NFSv4.0 (RFC 7530 16.33, 16.34). Its clients are others than those of EXCHANGE_ID, whatever they
// call themselves.
struct SetClientIdArgs {
  Bytes id;
  Verifier verifier{};
  Bytes principal;
  std::string_view address;
  // How the client is called once this is confirmed; null: it is not.
  CallbackPathPtr callback_path{};
};
struct SetClientIdResult {
  Status status = Status::Ok;  // ClidInuse
  ClientId clientid = 0;
  Verifier confirm{};
  LifePtr ended;          // as in ExchangeIdResult
  std::string evicted{};  // as in ExchangeIdResult
};
struct ConfirmResult {
  Status status = Status::Ok;  // StaleClientid, ClidInuse, Delay
  LifePtr ended;               // the incarnation that this one replaced; may be null
  ClientId lapsed = 0;         // as in CreateSessionResult
  Limit limit = Limit::None;   // of Delay
};
struct RenewResult {
  Status status = Status::Ok;  // StaleClientid, Expired
  LifePtr life;                // null unless Ok
};

struct CreateSessionArgs {
  ClientId clientid = 0;
  SequenceId sequence = 0;
  Bytes principal;
  bool integrity = false;  // as in Asker
  ChannelAttributes fore, back;
  ConnectionId connection = 0;
  bool connection_back_channel = false;  // asked, and the connection can: it will be granted
  CallbackConnection callbacks{};        // of this connection, if so
  CallbackPathPtr callback_path{};       // of the new session; may be null
};
struct CreateSessionResult {
  // StaleClientid, SeqMisordered, ClidInuse, WrongCred, Toosmall, Nospc, Delay. What succeeded is
  // kept for a retry, and so are Toosmall and Nospc; the others leave the sequence as it was.
  Status status = Status::Ok;
  SessionId sessionid{};
  SequenceId sequence = 0;
  bool back_channel = false;  // CREATE_SESSION4_FLAG_CONN_BACK_CHAN
  ChannelAttributes fore, back;
  bool replay = false;     // of one that was answered before
  bool confirmed = false;  // this one confirmed the client ID
  LifePtr life;            // the client's; not null when Ok
  LifePtr ended;           // the incarnation that this one replaced; may be null
  // With Delay: one that lapsed and has some of what is short. End it and ask again.
  ClientId lapsed = 0;
  // Of Nospc: Client, too many sessions. Of Delay: too many clients, or, with `caches_full`, no
  // memory for kept replies.
  Limit limit = Limit::None;
  bool caches_full = false;
};

// What a retry has in common with the request that it repeats (RFC 8881 2.10.6.1.3.1).
struct Fingerprint {
  std::uint64_t principal = 0;   // of who calls
  std::uint64_t operations = 0;  // of those behind SEQUENCE
  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

// SEQUENCE, and of the COMPOUND what it is recognised by.
struct SequenceArgs {
  SessionId sessionid{};
  ConnectionId connection = 0;
  SequenceId sequenceid = 0;
  std::uint32_t slotid = 0;
  std::uint32_t highest_slotid = 0;
  bool cachethis = false;
  std::uint32_t operations = 0;    // of the COMPOUND, SEQUENCE included
  std::uint32_t request_size = 0;  // ca_maxrequestsize counts the same
  Fingerprint fingerprint;
};

struct Sequenced {
  enum class Kind : std::uint8_t {
    Run,     // new: execute it, then finished()
    Replay,  // done before: answer with `reply`; null: RETRY_UNCACHED_REP (RFC 8881 2.10.6.1.3)
    Wait,    // the first still runs: wait(), then ask again
    Refuse,  // `status` is SEQUENCE's: BadSession, BadSlot, ConnNotBoundToSession, SeqMisordered,
             // SeqFalseRetry, TooManyOps, ReqTooBig
  };
  Kind kind = Kind::Refuse;
  Status status = Status::Ok;
  SlotRef slot;    // Run, Wait
  ReplyPtr reply;  // Replay
  // Run and Replay:
  LifePtr life;  // the client's
  std::uint32_t highest_slotid = 0;
  std::uint32_t target_highest_slotid = 0;
  std::uint32_t status_flags = 0;  // sr_status_flags, but for RESTART_RECLAIM_NEEDED
  std::uint32_t max_response_size = 0;
  std::uint32_t max_response_size_cached = 0;
};

struct BindResult {
  Status status = Status::Ok;    // BadSession, Inval
  std::uint32_t directions = 0;  // channel::, of what was asked
};

// Whether a client can be called, as far as its sessions tell.
enum class CallbackState : std::uint8_t {
  None,   // it has not said how, or has no session
  Bound,  // a connection that carries callbacks is there
  Lost,   // there was one
  Fault,  // it does not understand what it is called with
};

struct ClientInfo {
  ClientId clientid = 0;
  std::uint32_t minor = 0;  // of version 4
  std::string co_ownerid;
  std::string principal;
  std::string address;
  Life::Phase phase = Life::Phase::Active;
  bool confirmed = false;
  std::uint32_t sessions = 0;
  std::uint32_t states = 0;
  std::uint32_t revoked = 0;  // stateids that it has not freed yet
  CallbackState callbacks = CallbackState::None;
  Duration idle{};  // since the lease was renewed
};

class Clients {
 public:
  struct Options {
    std::uint32_t epoch = 1;  // of this start of the server: another one each time
    Duration lease{};         // lease_time
    Duration courtesy = std::chrono::hours(24);  // that a lapsed client keeps its locks
    SipKey key{};
    ClientLimits limits{};
  };

  explicit Clients(const Options& options);
  ~Clients();

  // Replaces Options::courtesy, for clients that have lapsed, too, when they are next looked at.
  void change_courtesy(Duration courtesy);
  // Replaces clients, clients_of_address, shared_out, unconfirmed and sessions. The others of
  // `limits` mean nothing: sessions were granted by those of the start, which stay. What there is
  // beyond a limit stays, too, and nothing more is granted until it has gone: what asks meanwhile
  // may be judged by some of the new limits and some of the former.
  void change_limits(const ClientLimits& limits);

  // The nine cases of RFC 8881 18.35.5.
  ExchangeIdResult exchange_id(const ExchangeIdArgs& args, TimePoint now);
  SetClientIdResult set_clientid(const SetClientIdArgs& args, TimePoint now);
  ConfirmResult confirm_clientid(ClientId clientid, const Verifier& confirm, Bytes principal,
                                 TimePoint now);
  // Every request of a 4.0 client that names it, or a stateid of it (RFC 7530 9.5).
  RenewResult renew_lease(ClientId clientid, TimePoint now);
  CreateSessionResult create_session(const CreateSessionArgs& args, TimePoint now);
  // WrongCred: the client ID, or the one of the session, is protected by a machine credential, and
  // `asker` does not have it. To be asked before the operations that have no principal of their
  // own; who is not there is Ok.
  Status check_credential(ClientId clientid, const Asker& asker) const;
  Status check_credential(const SessionId& sessionid, const Asker& asker) const;
  // BadSession, ConnNotBoundToSession where there is a connection and it is not associated with the
  // session. Requests that run on it run on; retries that wait for them are called.
  Status destroy_session(const SessionId& sessionid, ConnectionId connection);
  // StaleClientid, ClientidBusy. `ended` is to be released; it has no locks unless it lapsed.
  Status destroy_clientid(ClientId clientid, LifePtr& ended);

  // `asked`: channel:: bits that the client wants, `required` those of them it insists on,
  // `callbacks`: expired when the connection cannot carry callbacks.
  BindResult bind_connection(const SessionId& sessionid, ConnectionId connection,
                             std::uint32_t asked, std::uint32_t required,
                             const CallbackConnection& callbacks);
  // Its callbacks fail: none goes by it until it is bound again. Requests still come by it.
  void unbind_back_channel(const SessionId& sessionid, ConnectionId connection);
  // Connections that can carry callbacks of this session, the newest first.
  struct BackChannel {
    ConnectionId connection = 0;
    CallbackConnection callbacks;
  };
  std::vector<BackChannel> back_channels(const SessionId& sessionid) const;
  // Null where the session is gone, or was made without.
  CallbackPathPtr callback_path(const SessionId& sessionid) const;
  // Of all sessions of a client that have one; of a client of version 4.0 its only one, with a
  // SessionId of zeros.
  std::vector<std::pair<SessionId, CallbackPathPtr>> callback_paths(ClientId clientid) const;
  // SEQ4_STATUS_BACKCHANNEL_FAULT from now on.
  void backchannel_fault(const SessionId& sessionid);

  Sequenced sequence(const SequenceArgs& args, TimePoint now);
  // Of a request that Run was returned for, when its connection is gone and it changes nothing: a
  // client that is dead as far as anybody can tell keeps its lease by it no longer. At most once;
  // finished() is told, with `keeps_lease`, and is due all the same.
  void keeps_no_lease(const SlotRef& slot, const LifePtr& life, TimePoint now);
  // After Wait: `done` runs once, on whatever thread ends the request; it only posts. False: it is
  // not to wait for any more (ask again), or too many wait (then sequence() refuses with Delay).
  bool wait(const SlotRef& slot, UniqueFunction<void()> done);
  // `life` as Run had it. `reply`: what retries get; null where it is not kept.
  void finished(const SlotRef& slot, const LifePtr& life, ReplyPtr reply, TimePoint now,
                bool keeps_lease = true);

  // It may reclaim no more. CompleteAlready the second time, unless it might reclaim again.
  Status reclaim_complete(Life& life);

  // To be called now and then: unconfirmed records older than a lease go, and clients lapse.
  // Returns those that ended, for they had no state, and those that lapsed for longer than the
  // courtesy, or are wanted, which are still to be ended. `lapsed`: gets those that just did.
  std::vector<LifePtr> expire(TimePoint now, std::vector<LifePtr>* lapsed = nullptr);
  // Whether any lease can run out. A thread that confirms a client and then looks whether another
  // calls expire(), and one that stops doing so and then asks this, cannot miss each other.
  bool any_confirmed() const;
  // One that had lapsed when expire() last looked, and still has, and whose end makes room for
  // `asks`, who has reached a limit; 0: there is none.
  ClientId find_lapsed(Limit reached, Shortage of, const Life& asks) const;
  // Ends a client that lapsed (`lapsed_only`: because another wants what it holds; null when it
  // came back meanwhile), or any, as an administrator wants.
  LifePtr end(ClientId clientid, bool lapsed_only);

  LifePtr life(ClientId clientid) const;  // null: there is none
  // Identifies the client over restarts, by co_ownerid and principal; and the address that it came
  // from.
  struct Identity {
    std::string co_ownerid;
    std::string principal;
    std::string address;
  };
  std::optional<Identity> identity(ClientId clientid) const;

  // For a listing: who is in one shard just now, and one client as it is at one moment; nullopt
  // when it is gone.
  static constexpr std::uint32_t kShards = 64;
  std::vector<ClientId> ids(std::uint32_t shard) const;
  std::optional<ClientInfo> info(ClientId clientid, TimePoint now) const;
  // Of all of them.
  std::vector<ClientInfo> list(TimePoint now) const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace stag::nfs::state
