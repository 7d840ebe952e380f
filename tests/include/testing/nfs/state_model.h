// What Files has to answer, from a list of facts without any index: slow, and short enough to be
// seen to be right.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <utility>
#include <vector>

#include "nfs/state/files.h"

namespace stag::nfs::state::testing {

// How much is tried: STAG_STATE_STEPS random steps, and all sequences of STAG_STATE_DEPTH steps.
inline int number_from(const char* variable, int otherwise) {
  const char* const wanted = std::getenv(variable);
  return wanted == nullptr ? otherwise : std::atoi(wanted);
}
inline int random_steps() {
  return number_from("STAG_STATE_STEPS", 1'000'000);
}
inline int depth_or(int otherwise) {
  return number_from("STAG_STATE_DEPTH", otherwise);
}

// A few clients, owners, files and bytes, by number.
class Model {
 public:
  struct Open {
    int client = 0, owner = 0, file = 0;
    std::uint32_t access = 0, deny = 0;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> opened;  // OPENs in effect
    Stateid stateid;
  };
  struct Lock {
    int client = 0, owner = 0, file = 0, open_owner = 0;
    Stateid stateid;
  };
  struct Byte {
    int client = 0, owner = 0, file = 0, open_owner = 0;
    std::uint64_t byte = 0;
    bool exclusive = false;
  };

  std::vector<Open> opens;
  std::vector<Lock> locks;
  std::vector<Byte> bytes;

  // Which clients have a record of this start, and of earlier ones; which have sent
  // RECLAIM_COMPLETE to this start, and which are of version 4.0 and cannot.
  std::set<int> recorded, former, complete, without_sessions;
  // Files whose data, and whose attributes, are being changed, and those whose changes are stopped.
  std::multiset<int> data_changing, attributes_changing, stopped;
  // Of an OPEN that nobody else is in the way of. RFC 8881 9.7: what it denies is not being done.
  bool may_deny(int file, std::uint32_t deny, bool reclaim) const {
    return reclaim || (deny & kShareWrite) == 0 || !data_changing.contains(file);
  }
  bool grace = false;      // the grace period goes on
  bool full_time = false;  // and does not end early

  // RFC 8881 8.4.2.1, 18.51.3, RFC 7530 9.6.2: what becomes of an OPEN or a LOCK for this alone.
  Status claim(int client, bool reclaim) const {
    const bool done = complete.contains(client);
    if (reclaim) {
      if (!grace || done) return Status::NoGrace;
      return former.contains(client) ? Status::Ok : Status::ReclaimBad;
    }
    return !grace && (done || without_sessions.contains(client)) ? Status::Ok : Status::Grace;
  }
  // The server is there again, and knows the records only.
  void restarted() {
    opens.clear();
    locks.clear();
    bytes.clear();
    former.merge(std::exchange(recorded, {}));
    complete.clear();
    grace = !former.empty();
    full_time = std::any_of(former.begin(), former.end(),
                            [&](int client) { return without_sessions.contains(client); });
  }
  void grace_is_over() {
    grace = false;
    former.clear();
  }
  // True: nobody is left who could reclaim anything, as there was.
  bool completed(int client) {
    complete.insert(client);
    recorded.insert(client);
    return left(former.contains(client));
  }

  Open* find_open(int client, int owner, int file) {
    for (Open& open : opens)
      if (open.client == client && open.owner == owner && open.file == file) return &open;
    return nullptr;
  }
  Lock* find_lock(int client, int owner, int file, int open_owner) {
    for (Lock& lock : locks)
      if (lock.client == client && lock.owner == owner && lock.file == file &&
          lock.open_owner == open_owner)
        return &lock;
    return nullptr;
  }

  // The clients whose opens are in the way of such access and denial; `except`'s are not.
  std::set<int> in_the_way(int file, std::uint32_t access, std::uint32_t deny,
                           const Open* except = nullptr) const {
    std::set<int> clients;
    for (const Open& open : opens)
      if (&open != except && open.file == file && ((open.deny & access) | (open.access & deny)))
        clients.insert(open.client);
    return clients;
  }
  // The clients whose bytes are in the way of a lock.
  std::set<int> in_the_way(int client, int owner, int file, Range range, bool exclusive) const {
    std::set<int> clients;
    for (const Byte& byte : bytes)
      if (byte.file == file && (byte.client != client || byte.owner != owner) &&
          range.overlaps({byte.byte, byte.byte}) && (exclusive || byte.exclusive))
        clients.insert(byte.client);
    return clients;
  }

  void opened(int client, int owner, int file, std::uint32_t access, std::uint32_t deny,
              const Stateid& stateid) {
    Open* open = find_open(client, owner, file);
    if (open == nullptr) open = &opens.emplace_back(Open{client, owner, file, 0, 0, {}, {}});
    open->access |= access;
    open->deny |= deny;
    const std::pair asked(access, deny);
    if (std::find(open->opened.begin(), open->opened.end(), asked) == open->opened.end())
      open->opened.push_back(asked);
    open->stateid = stateid;
    recorded.insert(client);
  }
  // Whether some OPENs in effect together have exactly these bits, of either kind.
  static bool may_downgrade(const Open& open, std::uint32_t access, std::uint32_t deny) {
    bool access_fits = false, deny_fits = false;
    for (std::uint32_t some = 1; some < 1u << open.opened.size(); ++some) {
      std::uint32_t accesses = 0, denies = 0;
      for (std::size_t i = 0; i < open.opened.size(); ++i)
        if ((some >> i & 1) != 0) {
          accesses |= open.opened[i].first;
          denies |= open.opened[i].second;
        }
      access_fits |= accesses == access;
      deny_fits |= denies == deny;
    }
    return access_fits && deny_fits;
  }
  static void downgraded(Open& open, std::uint32_t access, std::uint32_t deny) {
    open.access = access;
    open.deny = deny;
    // As far as it can be told: accesses and denials that are in effect no more.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> left;
    for (auto [a, d] : open.opened) {
      if ((a & ~access) != 0) a = 0;
      if ((d & ~deny) != 0) d = kGone;
      const std::pair kept(a, d);
      if (std::find(left.begin(), left.end(), kept) == left.end()) left.push_back(kept);
    }
    open.opened = left;
  }
  void closed(int client, int owner, int file) {
    std::erase_if(bytes, [&](const Byte& byte) {
      return byte.client == client && byte.open_owner == owner && byte.file == file;
    });
    std::erase_if(locks, [&](const Lock& lock) {
      return lock.client == client && lock.open_owner == owner && lock.file == file;
    });
    std::erase_if(opens, [&](const Open& open) {
      return open.client == client && open.owner == owner && open.file == file;
    });
  }
  void unlocked(int client, int owner, int file, Range range) {
    std::erase_if(bytes, [&](const Byte& byte) {
      return byte.client == client && byte.owner == owner && byte.file == file &&
             range.overlaps({byte.byte, byte.byte});
    });
  }
  void locked(const Lock& lock, Range range, bool exclusive) {
    unlocked(lock.client, lock.owner, lock.file, range);
    for (std::uint64_t byte = range.first; byte <= range.last; ++byte)
      bytes.push_back({lock.client, lock.owner, lock.file, lock.open_owner, byte, exclusive});
    if (Lock* known = find_lock(lock.client, lock.owner, lock.file, lock.open_owner))
      known->stateid = lock.stateid;
    else
      locks.push_back(lock);
  }
  bool holds_bytes(const Lock& lock) const {
    return std::any_of(bytes.begin(), bytes.end(), [&](const Byte& byte) {
      return byte.client == lock.client && byte.owner == lock.owner && byte.file == lock.file &&
             byte.open_owner == lock.open_owner;
    });
  }
  // As completed().
  bool ended(int client) {
    std::erase_if(bytes, [&](const Byte& byte) { return byte.client == client; });
    std::erase_if(locks, [&](const Lock& lock) { return lock.client == client; });
    std::erase_if(opens, [&](const Open& open) { return open.client == client; });
    const bool could = former.contains(client) && !complete.contains(client);
    recorded.erase(client);
    former.erase(client);
    complete.erase(client);
    return left(could);
  }

 private:
  // One who could reclaim, or not, can no more.
  bool left(bool could) {
    if (!grace || !could) return false;
    if (!std::includes(complete.begin(), complete.end(), former.begin(), former.end()))
      return false;
    if (!full_time) grace_is_over();
    return true;
  }

  static constexpr std::uint32_t kGone = 8;
};

}  // namespace stag::nfs::state::testing
