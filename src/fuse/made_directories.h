// MadeDirectories: directories that this mount has made, all names in which are known for as long
// as nobody else changes them: who makes files there (tar(1), git(1)) need not ask the server first
// whether the names are free. Each creation says what the directory's change attribute was before
// it (RFC 8881 3.3.5): another one than the last that is known means that another client was there.
//
// Pure. Thread: the loop of the Mount. Memory: kMostNames names.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "base/loop.h"
#include "nfs/client/protocol/types.h"

namespace stag::fuse {

class MadeDirectories {
 public:
  static constexpr std::size_t kMostDirectories = 64;
  static constexpr std::size_t kMostNames = 16'384;  // of all directories

  // Names are used unasked for `valid` after the server was heard of their directory.
  explicit MadeDirectories(Duration valid) : valid_(valid) {}

  // The kernel knows the new, empty directory as `number`.
  void begin(std::uint64_t number, std::uint64_t change, TimePoint now);
  // An object was made in it.
  void on_made(std::uint64_t number, const std::string& name,
               const nfs::client::DirectoryChange& change, TimePoint now);
  // It was changed in another way, or is not known any more.
  void end(std::uint64_t number);
  // For how long yet the name is certainly free; zero: it may be taken.
  Duration lacks(std::uint64_t number, const std::string& name, TimePoint now) const;

 private:
  struct Directory {
    std::uint64_t change = 0;
    TimePoint as_of;
    std::unordered_set<std::string> names{};
  };

  Duration valid_;
  std::unordered_map<std::uint64_t, Directory> directories_;
  std::size_t names_ = 0;
};

}  // namespace stag::fuse
