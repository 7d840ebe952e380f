// Which names a file system may take for one, because upper and lower case, or the Unicode
// normal forms, make no difference to it. Nothing tells which do that: PATHCONF and
// FATTR4_CASE_INSENSITIVE say of many that case counts, though it does not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace stag::cli {

// Names of Latin, Greek, Cyrillic, kana and Hangul letters that such a file system takes for one
// have one result. The reverse does not hold: a letter with a mark has no part in it. Only a look
// into the file system tells.
std::string folded_name(std::string_view name);

// People give no more names that have one folded name.
inline constexpr std::size_t kMostAlike = 64;

// The names of one directory so far. Takes no copies of them.
class NameGroups {
 public:
  // Those before it that have the folded name of `name`, the first kMostAlike at most. `name`
  // outlives the NameGroups.
  std::vector<std::string> add(const std::string& name);

 private:
  std::unordered_multimap<std::size_t, const std::string*> names_;  // by the hash of what is folded
};

}  // namespace stag::cli
