// OwnersV40: the owners of opens and of byte-range locks in version 4.0 (RFC 7530 sections 9.1.5,
// 9.1.7 to 9.1.11). Each numbers its operations, of which one is in progress at a time.
//
//   opens  An owner serves one open at a time. One that is confirmed, and whose number is certain,
//          serves another open afterwards, which need not be confirmed then.
//   locks  An owner has a new name whenever it begins to lock, so that the server's numbers of
//          before mean nothing. One without locks is forgotten.
//
// Thread: the Channel's loop. Memory: an owner for each open and each holder of locks, and
// kMostIdle.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nfs/client/v4/wait_list.h"
#include "nfs/session/opens.h"
#include "nfs/session/owner_sequence.h"

namespace stag::nfs::client::nfs4 {

class OwnersV40 {
 public:
  using OpenId = session::Opens::Id;
  using LockOwner = session::Opens::LockOwner;
  static constexpr std::size_t kMostIdle = 64;

  // The first LOCK of an owner by an open, which makes its stateid, until there is an answer. Sent
  // again as it was, it gets that answer (RFC 7530 16.10.5).
  struct FirstLock {
    OpenId open = 0;
    std::uint32_t incarnation = 0;  // of the client
    v4::LOCK4args args{};
    session::Opens::Lock lock{};
  };
  struct Owner {
    std::uint64_t number = 0;  // unlike that of any other owner
    session::OwnerSequence sequence{};
    bool confirmed = false;
    std::optional<FirstLock> first_lock{};
    bool busy = false;
    WaitList waiting{};
  };
  using Ref = std::shared_ptr<Owner>;
  // Of one operation; null where the operation has none.
  struct Pair {
    Ref open{};
    Ref locks{};
    bool operator==(const Pair&) const = default;
  };

  // An owner's operation is in progress until the end of its Turn.
  class Turn {
   public:
    Turn() = default;
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() { end(); }
    // False: another operation of `owner`, which may be null, is in progress.
    bool begin(Ref owner);
    void end();

   private:
    Ref owner_;
  };

  // The owner of an open, of its locks; a new one where there is none.
  Ref of_open(OpenId open);
  Ref of_locks(const LockOwner& owner);
  // What it is called on the wire. An owner of locks that is not known has no locks.
  static std::string name_of(const Owner& owner);
  std::string name_of(const LockOwner& owner) const;

  // The server does not take its numbers: there will be another one.
  void renew(OpenId open) { opens_.erase(open); }
  // The open has ended, or was never there.
  void release(OpenId open);
  void forget(const LockOwner& owner) { locks_.erase(owner); }
  bool is_busy(const LockOwner& owner) const;

  std::size_t size() const { return opens_.size() + locks_.size() + idle_.size(); }

 private:
  Ref fresh();

  std::map<OpenId, Ref> opens_;
  std::map<LockOwner, Ref> locks_;
  std::vector<Ref> idle_;
  std::uint64_t next_number_ = 1;
};

}  // namespace stag::nfs::client::nfs4
