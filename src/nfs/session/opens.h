// Opens: what a client of NFSv4 holds at its server, opens of files and byte-range locks under
// them, so that it can be claimed again from a server that has lost it (RFC 8881 sections 8.4.2,
// 9.6; RFC 7530 9.6.2). It says what is to be claimed next, and is told what the server said:
//
//   the server has restarted      -> open by CLAIM_PREVIOUS, locks with `reclaim`: in the grace
//                                    period, before RECLAIM_COMPLETE
//   that is refused, or a stateid is not known any more, because the lease had run out
//                                 -> FREE_STATEID, open by CLAIM_FH (in version 4.0 by CLAIM_NULL
//                                    alone); the locks are lost, as others may have had them
//   that is refused, too          -> the open is lost
//
// What is lost stays in the books, so that its holder is told, until the holder gives it back.
//
// Pure: no clock, no thread. Memory: an open and a lock each, as many as programs hold.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nfs/proto/nfs4.h"
#include "nfs/state/range_modes.h"

namespace stag::nfs::session {

// The user that has opened a file, and so claims it: whatever the user of Opens has to know of that
// one.
struct Opener;

class Opens {
 public:
  using Id = std::uint64_t;         // of an open; its owner's name, too
  using LockOwner = std::string;    // unique among this client's; bytes
  using Modes = state::RangeModes;  // of the bytes that an owner has locked

  struct Lock {
    state::Range range;
    state::RangeMode mode = state::RangeMode::Shared;
  };
  // What the server is asked for, so that it and this client agree again.
  struct Claim {
    enum class Kind : std::uint8_t { Reclaim, ReclaimLock, Free, Reopen };
    Kind kind = Kind::Reclaim;
    Id open = 0;
    LockOwner owner{};       // of ReclaimLock
    Lock lock{};             // of ReclaimLock
    v4::stateid4 stateid{};  // of Free
  };

  // Of versions with sessions the latest stateid of a state is meant whatever its number, and a
  // lock owner without locks is forgotten. In version 4.0 the number counts, and an owner's stateid
  // is kept until forget() (RFC 7530 9.1.4.4, 16.10.5).
  enum class Version : std::uint8_t { V40, WithSessions };
  explicit Opens(Version version = Version::WithSessions) : version_(version) {}

  bool empty() const { return opens_.empty(); }
  std::size_t size() const { return opens_.size(); }
  // Of the first open; 0: there is none.
  Id first() const { return opens_.empty() ? 0 : opens_.begin()->first; }
  // An open that the server has granted. `access`: OPEN4_SHARE_ACCESS_*; `opener` may be null.
  void add(Id id, const v4::nfs_fh4& file, std::uint32_t access, const v4::stateid4& stateid,
           std::shared_ptr<const Opener> opener = nullptr);
  void remove(Id id) { drop(id); }

  // Whether the open, and all locks under it, are what their holder believes.
  bool intact(Id id) const;
  // For an operation by this open; nullopt: it is lost, or there is no such open.
  std::optional<v4::stateid4> stateid(Id id) const;
  // For data by this open, of locks under it where there are any: the server refuses what comes
  // under locks that it has given to others (RFC 8881 9.1.2, 8.2.5; RFC 7530 9.1.4.5). nullopt: as
  // before, or locks are lost.
  std::optional<v4::stateid4> data_stateid(Id id) const;
  const v4::nfs_fh4* file(Id id) const;
  std::uint32_t access(Id id) const;
  std::shared_ptr<const Opener> opener(Id id) const;

  // Of the locks of one owner by one open; nullopt: the server knows none.
  std::optional<v4::stateid4> lock_stateid(Id id, const LockOwner& owner) const;
  bool has_locks(Id id, const LockOwner& owner) const;
  // The owner of the locks by this open that have this stateid now; null: there is none.
  const LockOwner* lock_owner(Id id, const v4::stateid4& stateid) const;
  // What it has locked, all of the range in order; empty: the open is not known.
  std::vector<Modes::Piece> locks_within(Id id, const LockOwner& owner,
                                         const state::Range& range) const;
  // The same by all opens of this one's file.
  std::vector<Modes::Piece> all_within(Id id, const LockOwner& owner,
                                       const state::Range& range) const;
  // An owner with locks by this open; null: there is none.
  const LockOwner* any_lock_owner(Id id) const;
  // The server has granted a lock, or taken it back (mode None): instead of what the owner had
  // there by any open of the file.
  void on_lock(Id id, const LockOwner& owner, const Lock& lock, const v4::stateid4& stateid);
  // It may have granted a lock: nobody has heard. It is to be taken back, as one that it has.
  void on_maybe_locked(Id id, const LockOwner& owner, const Lock& lock);
  // There is no lock there any more, whatever the server says.
  void on_unlock(Id id, const LockOwner& owner, const state::Range& range);
  // Of version 4.0. Whether the owner has locks by any open; an owner that is not named any more
  // (true: the server knows it).
  bool has_locks(const LockOwner& owner) const;
  bool forget(const LockOwner& owner);
  // Of version 4.0: an answer that was lost may have had a newer stateid; and to the server ours is
  // an old one: whether such an answer explains that, and ours is the next one now.
  void on_lost_stateid(Id id, const LockOwner& owner) noexcept;
  bool on_old_stateid(Id id, const LockOwner& owner);

  // The server has restarted: it knows nothing of all this.
  void on_restart();
  // The same, to a client that ends: there is nothing that it would claim.
  void forget_all();
  // The client ends: what is not claimed yet is forgotten, but for a claim that may have been
  // granted though nobody has heard of it.
  void give_up_claims();
  // Stateids that the server has given, of opens from `from` on: of whole opens, until there are
  // `most` or more.
  struct Given {
    Id open = 0;
    v4::stateid4 stateid{};
  };
  std::vector<Given> given(Id from, std::size_t most) const;
  // The server does not know this stateid, of the open or of locks under it. Another one than that
  // of now was claimed again meanwhile.
  void on_bad_stateid(Id id, const v4::stateid4& stateid);
  // Whether nothing is to be claimed any more: at all, of a server that has restarted, and of this
  // open with its locks.
  bool settled() const { return reclaimed() && to_reopen_.empty() && to_free_.empty(); }
  bool reclaimed() const { return to_reclaim_.empty(); }
  bool settled(Id id) const;

  // Of a server that has restarted, before RECLAIM_COMPLETE. nullopt: there is nothing to claim
  // that is not being claimed.
  std::optional<Claim> next_reclaim();
  // The same of what is to be opened again, after it.
  std::optional<Claim> next_reopen();
  // Whether they would give something, and whether all of that was put off.
  enum class Due : std::uint8_t { None, Now, Later };
  Due reclaim_due() const;
  Due reopen_due() const;
  // The server is asked, and has answered or will not: in between nothing of this open is the next
  // claim, so that several may be made at once.
  void begin(const Claim& claim);
  void end(const Claim& claim);
  // The server granted it, with this stateid (none of Free), or refused it.
  void on_claimed(const Claim& claim, const v4::stateid4& stateid);
  void on_refused(const Claim& claim);
  // Others are first: the server says so, or nothing at all.
  void put_off(const Claim& claim);
  // The same of one that the server was not asked for. What else is to be claimed and whose opener
  // is `of_holder` is put off with it; called with null, too.
  using OfHolder = std::function<bool(const Opener*)>;
  void on_put_off(const Claim& claim, const OfHolder& of_holder);

 private:
  enum class State : std::uint8_t { Held, Reclaim, Reopen, Lost };
  struct Locks {
    std::optional<v4::stateid4> stateid{};
    std::uint32_t lost_stateids = 0;  // that may have followed it
    Modes modes{};
    // Locks from this byte on are to be reclaimed; nullopt: none is.
    std::optional<std::uint64_t> reclaim_from{};
  };
  struct Open {
    v4::nfs_fh4 file{};
    std::uint32_t access = 0;
    v4::stateid4 stateid{};
    State state = State::Held;
    bool asked = false;  // it is claimed, and what the server says is not known
    bool locks_lost = false;
    std::map<LockOwner, Locks> locks{};
    std::shared_ptr<const Opener> opener{};
  };

  std::optional<Claim> next_reclaim_now();
  std::optional<Claim> next_reopen_now();
  // The first of these that is neither put off nor being claimed.
  std::optional<Id> first_due(const std::set<Id>& claims) const;
  Due due(const std::set<Id>& claims) const;
  // What was put off has its turn again. False: there is none.
  bool resume();
  Open* find(Id id);
  const Open* find(Id id) const;
  Locks* find_locks(Id id, const LockOwner& owner);
  void drop(Id id);
  void replace_others(Id id, const LockOwner& owner, const state::Range& range);
  void lose_locks(Open& open);
  void free_later(const Open& open);
  void freed();
  void on_reclaimed(Locks& locks, const state::Range& range, const v4::stateid4& stateid) const;
  static std::optional<Claim> reclaim_of(Id id, const Open& open);
  static bool is_of(const Open& open, const v4::stateid4& stateid);
  v4::stateid4 kept(v4::stateid4 stateid) const;
  static std::optional<Lock> first_lock(const Modes& modes, std::uint64_t from);

  Version version_;
  std::map<Id, Open> opens_;
  std::set<std::pair<v4::nfs_fh4, Id>> by_file_;
  std::set<Id> to_reclaim_;  // that are, or have locks that are
  std::set<Id> to_reopen_;
  std::set<Id> put_off_;   // of those two
  std::set<Id> underway_;  // are being claimed
  std::deque<v4::stateid4> to_free_;
  bool freeing_ = false;        // the first of them
  bool frees_put_off_ = false;  // all of them
};

}  // namespace stag::nfs::session
