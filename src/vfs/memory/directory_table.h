// The entries of one directory in memory: found by name in constant time, listed in the order of
// their cookies. A cookie belongs to an entry as long as it lives and is never given again, so a
// listing goes on where it was whatever comes and goes. Not synchronised; the store holds the
// directory's shard.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/siphash.h"

namespace stag::vfs::memory {

using InodeId = std::uint64_t;

// Cookies of "." and "..", which are no entries of the table.
inline constexpr std::uint64_t kDotCookie = 1;
inline constexpr std::uint64_t kDotDotCookie = 2;

// Keyed, so that no client can choose names that all land in one bucket.
class NameHash {
 public:
  using is_transparent = void;
  // `key` outlives it.
  explicit NameHash(const SipKey& key) : key_(&key) {}
  NameHash() : NameHash(process_sip_key()) {}
  std::size_t operator()(std::string_view name) const {
    return static_cast<std::size_t>(siphash(*key_, bytes_of(name)));
  }

 private:
  const SipKey* key_;
};

class DirectoryTable {
 public:
  bool empty() const { return names_.empty(); }
  std::size_t size() const { return names_.size(); }

  std::optional<InodeId> find(std::string_view name) const;
  // The name must be free. Throws std::bad_alloc; nothing has changed then.
  void insert(std::string_view name, InodeId inode);
  // The name must be there; it keeps its cookie, so a listing under way shows it once.
  void replace(std::string_view name, InodeId inode);
  void erase(std::string_view name);

  // Calls visit(name, inode, cookie) for the entries after `cookie`, in order, until it answers
  // false; false then.
  template <class Visit>
  bool visit_after(std::uint64_t cookie, Visit visit) const {
    for (auto at = cookies_.upper_bound(cookie); at != cookies_.end(); ++at)
      if (!visit(std::string_view(at->second->first), at->second->second.inode, at->first))
        return false;
    return true;
  }

 private:
  struct Entry {
    InodeId inode;
    std::uint64_t cookie;
  };
  using Names = std::unordered_map<std::string, Entry, NameHash, std::equal_to<>>;
  using Cookies = std::map<std::uint64_t, const Names::value_type*>;  // nodes of names_ never move

  Names names_;
  Cookies cookies_;
  std::uint64_t next_cookie_ = kDotDotCookie + 1;
};

}  // namespace stag::vfs::memory
