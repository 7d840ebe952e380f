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

  // Whose opens are in the way of such access and denial; `except`'s are not.
  std::set<int> in_the_way(int file, std::uint32_t access, std::uint32_t deny,
                           const Open* except = nullptr) const {
    std::set<int> clients;
    for (const Open& open : opens)
      if (&open != except && open.file == file && ((open.deny & access) | (open.access & deny)))
        clients.insert(open.client);
    return clients;
  }
  // Whose bytes are in the way of a lock.
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
  void ended(int client) {
    std::erase_if(bytes, [&](const Byte& byte) { return byte.client == client; });
    std::erase_if(locks, [&](const Lock& lock) { return lock.client == client; });
    std::erase_if(opens, [&](const Open& open) { return open.client == client; });
  }

 private:
  static constexpr std::uint32_t kGone = 8;
};

}  // namespace stag::nfs::state::testing
