// The open and lock owners of NFSv4.0, which has no sessions (RFC 7530 9.1.7 to 9.1.11): each
// numbers its operations, and the results of its last one are kept for a retransmission.
//
// Pure: no clock, thread or protocol. Every function may be called from any thread. Owners that are
// unknown are not checked (9.1.9): when a client has too many, the one that it has not used for
// longest is forgotten, and a new OPEN of it has to be confirmed.
//
// After Run with an owner, finished() or abandoned() is due on every exit.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "nfs/state/clients.h"
#include "nfs/state/types.h"

namespace stag::nfs::state {

enum class OwnerKind : std::uint8_t { Open, Lock };
// The operations that have a seqid.
enum class OwnerOperation : std::uint8_t { Open, OpenConfirm, OpenDowngrade, Close, Lock, Unlock };

struct OwnerArgs {
  OwnerKind kind = OwnerKind::Open;
  ClientId clientid = 0;
  Bytes owner;
  std::uint32_t seqid = 0;
  OwnerOperation operation = OwnerOperation::Open;
  bool creates = false;         // OPEN and LOCK make an owner that is unknown
  std::uint64_t principal = 0;  // a retransmission comes from the same one
};

struct OwnerRecord;
using OwnerRef = std::shared_ptr<OwnerRecord>;

struct OwnerTurn {
  enum class Kind : std::uint8_t {
    Run,     // execute it
    Replay,  // answer with `reply`
    Refuse,  // `status`: BadSeqid, BadStateid, Delay (another operation of this owner runs)
  };
  Kind kind = Kind::Run;
  Status status = Status::Ok;
  ReplyPtr reply;
  OwnerRef owner;         // of Run; null: unknown, nothing is checked
  bool confirmed = true;  // of Run: false wants an OPEN_CONFIRM
  bool fresh = false;     // of Run: the owner's first operation
  // Of Run and Refuse: an open that was never confirmed and never will be. It is to be closed.
  std::optional<Stateid> cancelled;
};

class Owners {
 public:
  Owners();
  ~Owners();

  OwnerTurn begin(const OwnerArgs& args);
  // The CLOSE of a stateid that is gone: Replay, when it was its owner's last operation, or
  // BadStateid.
  OwnerTurn closed_before(const Stateid& stateid, std::uint32_t seqid);

  // The operation was done, or refused with a status that advances the seqid: the results are what
  // a retransmission gets.
  void finished(const OwnerRef& owner, const OwnerArgs& args, ReplyPtr reply);
  // Refused with a status that leaves the seqid as it was (9.1.7).
  void abandoned(const OwnerRef& owner);
  // OPEN was granted to an owner that is not confirmed; CLOSE ended this open.
  void opened(const OwnerRef& owner, const Stateid& stateid);
  void closed(const OwnerRef& owner, const Stateid& stateid);
  // LOCK made a stateid for a lock owner; those that it has, some of them gone perhaps.
  void locked(const OwnerRef& owner, const Stateid& stateid);
  std::vector<Stateid> locks(ClientId clientid, Bytes owner) const;
  // A reclaim needs no OPEN_CONFIRM (9.1.11).
  void confirm(const OwnerRef& owner);

  // Whether an open owner of the client that has had a file open was last used by this principal.
  bool has_opened(ClientId clientid, std::uint64_t principal) const;

  // RELEASE_LOCKOWNER, and the end of a client.
  void forget(OwnerKind kind, ClientId clientid, Bytes owner);
  void release(ClientId clientid);

  std::size_t size() const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace stag::nfs::state
