// The nouns of NFSv4 state, as plain values: identifiers, statuses, and what a client's sessions
// and its locks share. No protocol types: the protocol layer maps a Status to the nfsstat4 of the
// same name.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/loop.h"
#include "vfs/types.h"

namespace stag::nfs::state {

// The errors of RFC 8881 section 15.1 (and RFC 7530 section 13.1) that state gives rise to, by
// name.
enum class Status : std::uint8_t {
  Ok,
  AdminRevoked,
  BadSeqid,  // NFSv4.0 only
  BadSession,
  BadSlot,
  BadStateid,
  ClidInuse,
  ClientidBusy,
  CompleteAlready,
  ConnNotBoundToSession,
  Delay,
  DelegRevoked,
  Denied,
  Expired,
  Grace,
  Inval,
  Locked,
  LocksHeld,
  NoGrace,
  Noent,
  Nospc,
  NotSame,
  OldStateid,
  Openmode,
  Perm,
  ReclaimBad,
  ReclaimConflict,
  ReqTooBig,
  SeqFalseRetry,
  SeqMisordered,
  Serverfault,
  ShareDenied,
  StaleClientid,
  StaleStateid,  // NFSv4.0 only
  Toosmall,
  TooManyOps,
  WrongCred,
};

using ClientId = std::uint64_t;    // clientid4; 0 is never one
using SequenceId = std::uint32_t;  // sequenceid4
using SessionId = std::array<std::byte, 16>;
using Verifier = vfs::Verifier;  // verifier4
// Whatever names a connection for the protocol layer; only compared here.
using ConnectionId = std::uint64_t;
constexpr ConnectionId kNoConnection = 0;

// One request that runs, and its slot. Only copied around.
struct SlotRef {
  SessionId sessionid{};
  std::uint32_t slotid = 0;
  SequenceId sequenceid = 0;
};

// stateid4. `other` names a set of locks: boot epoch, place in a table, what nobody can guess.
struct Stateid {
  std::uint32_t seqid = 0;
  std::array<std::byte, 12> other{};
  friend bool operator==(const Stateid&, const Stateid&) = default;
};

// RFC 8881 8.2.3. What stands for the current stateid is replaced above, before it comes here.
inline constexpr Stateid kAnonymousStateid{};
inline constexpr Stateid kBypassStateid = [] {
  Stateid stateid{.seqid = 0xffffffff};
  stateid.other.fill(std::byte{0xff});
  return stateid;
}();
// What a CLOSE returns (RFC 8881 18.2.4): valid nowhere.
inline constexpr Stateid kInvalidStateid{.seqid = 0xffffffff};

// One file, whatever path or export it was reached by.
struct FileKey {
  std::uint64_t store = 0;
  vfs::Handle handle;
  // The export by which it was reached, for a client that is told of the file: a client knows it by
  // no other. Of no account when keys are compared.
  std::uint32_t via = 0;
  friend bool operator==(const FileKey& a, const FileKey& b) {
    return a.store == b.store && a.handle == b.handle;
  }
};

// share_access and share_deny are sets of these bits, with the values of RFC 8881 9.7.
inline constexpr std::uint32_t kShareRead = 1;
inline constexpr std::uint32_t kShareWrite = 2;
inline constexpr std::uint32_t kShareBoth = 3;

enum class DelegationType : std::uint8_t { Read, Write };

// How a client ID is protected from everybody but the machine whose it is (RFC 8881 2.10.8.3):
// SP4_NONE, or SP4_MACH_CRED with sets of operations, bit n for operation n.
struct StateProtection {
  bool machine_credential = false;
  std::uint64_t must_enforce = 0;  // spo_must_enforce
  std::uint64_t must_allow = 0;    // spo_must_allow
};

// The sender of a request, where a machine credential may be wanted.
struct Asker {
  Bytes principal;         // flavor and name, as the protocol layer writes them; only compared
  bool integrity = false;  // proven for the whole request: RPCSEC_GSS with integrity or privacy
};

// Which limit on how much there may be of something was reached.
enum class Limit : std::uint8_t { None, Client, Address, All, File };
// What is short then: places for clients, memory for kept replies, ...
enum class Shortage : std::uint8_t { Clients, Caches, States, Delegations };

// Whether an address that has `own` of the `all` that are given out may have `more`: never more
// than it leaves free. So the first one gets half of them, the next one half of the rest, and there
// is always something left.
template <class Count>
constexpr bool leaves_enough(Count own, Count all, Count more, Count limit) {
  return all <= limit && own + more <= limit - all;
}

// What clients behind one address have together.
struct AddressAccount {
  explicit AddressAccount(std::string of = {}) : address(std::move(of)) {}
  const std::string address;             // without port
  std::atomic<std::uint32_t> states{0};  // as in Life
  std::atomic<std::uint32_t> delegations{0};
  std::atomic<std::uint32_t> clients{0};
  std::atomic<std::uint64_t> cache{0};  // bytes
};

// Why a client whose lease has run out is given up.
enum class EndedFor : std::uint8_t { TimeOver, Conflict, NewClient, Room };

// What a client's sessions and its locks both refer to; the one thing that Clients and Files share.
// Thread: any.
struct Life {
  enum class Phase : std::uint8_t {
    Active,
    Lapsed,  // the lease has run out; its locks stay until another wants them
    Ended,   // for ever: whatever it holds is void, and nothing can be added
  };

  explicit Life(ClientId id,
                std::shared_ptr<AddressAccount> of = std::make_shared<AddressAccount>())
      : clientid(id), account(std::move(of)) {}

  const ClientId clientid;
  std::atomic<Phase> phase{Phase::Active};
  // Requests that run: the lease does not run out meanwhile (RFC 8881 8.3).
  std::atomic<std::uint32_t> running{0};
  // What it holds in Files: opens, lock stateids and byte ranges, large owners counted more than
  // once.
  std::atomic<std::uint32_t> states{0};
  // Delegations among these.
  std::atomic<std::uint32_t> delegations{0};
  // It kept one for too long: it gets none until then.
  std::atomic<TimePoint> no_delegation_before{TimePoint::min()};
  // Stateids that were revoked and not yet freed, by the SEQ4_STATUS flag they raise.
  std::atomic<std::uint32_t> admin_revoked{0};
  std::atomic<std::uint32_t> recallable_revoked{0};
  std::atomic<std::uint32_t> expired_revoked{0};
  // Had locks when the server went down, or another one whose clients were adopted, as the recovery
  // records say. Set by the protocol layer before its CREATE_SESSION is answered, and before it
  // reclaims: it may have been a client of both servers, and done here long ago.
  std::atomic<bool> may_reclaim{false};
  std::atomic<bool> reclaim_complete{false};  // RECLAIM_COMPLETE was done
  // Is in the recovery records, so that after a restart it may claim again what it has.
  std::atomic<bool> recorded{false};
  // It has lost something of which it may not know, or did not reclaim all before others could take
  // it: no record of it is written until that is settled (RFC 8881 8.4.3).
  std::atomic<std::uint32_t> revoking{0};  // revocations before which its record goes
  std::atomic<bool> lost{false};           // of version 4.0, which has no FREE_STATEID
  std::atomic<bool> cut_off{false};        // the grace period ended before it was done
  std::atomic<bool> ending{false};         // its record is being removed, because it lapsed
  // In which grace period it claimed something last; GracePeriod's.
  std::uint64_t claimed_in = 0;
  // Not TimeOver: another wants what it holds since it lapsed; it is to be ended, and has no
  // courtesy.
  std::atomic<EndedFor> wanted{EndedFor::TimeOver};
  // After it ended, a conflicting request found something of it in the way and took it away.
  std::atomic<bool> swept{false};
  // It has locked ranges that programs of the server's machine see.
  std::atomic<bool> seen_by_programs{false};
  // Set before anybody else has the Life, and kept.
  StateProtection protection;
  // A client of version 4.0, which has no RECLAIM_COMPLETE. Set before anybody else has the Life.
  bool without_sessions = false;
  const std::shared_ptr<AddressAccount> account;

  bool has_lost() const {
    if (without_sessions) return lost.load();
    return (admin_revoked.load() | recallable_revoked.load() | expired_revoked.load()) != 0;
  }
  // `revoking` is read first: it ends after what was revoked has been counted.
  bool forfeits() const { return revoking.load() != 0 || cut_off.load() || has_lost(); }
  bool ended() const { return phase.load(std::memory_order_acquire) == Phase::Ended; }
  bool lapsed() const { return phase.load(std::memory_order_acquire) == Phase::Lapsed; }
};
using LifePtr = std::shared_ptr<Life>;

}  // namespace stag::nfs::state
