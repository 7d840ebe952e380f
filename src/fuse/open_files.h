// OpenFiles: what programs have open, by inode and by the number that the kernel calls an open(2)
// by.
//
// Thread: the loop of the Mount.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "nfs/client/protocol/types.h"

namespace stag::fuse {

class OpenFiles {
 public:
  using File = nfs::client::File;

  // The number of a new open.
  std::uint64_t add(std::uint64_t inode, const File& file, std::uint64_t failures = 0) {
    files_.emplace(Key{inode, next_}, Open{file, failures});
    return next_++;
  }
  // Of the failures that lost data of the file (UnstableWrites), how many whoever has it open knows
  // of. Null: there is no such open.
  std::uint64_t* known_failures(std::uint64_t inode, std::uint64_t number) {
    const auto found = files_.find({inode, number});
    return found == files_.end() ? nullptr : &found->second.known_failures;
  }
  // Null: there is none.
  const File* find(std::uint64_t inode, std::uint64_t number) const {
    const auto found = files_.find({inode, number});
    return found == files_.end() ? nullptr : &found->second.file;
  }
  void remove(std::uint64_t inode, std::uint64_t number) { files_.erase({inode, number}); }
  // All of one inode.
  std::vector<File> of(std::uint64_t inode) const {
    std::vector<File> files;
    for (auto at = files_.lower_bound({inode, 0}); at != files_.end() && at->first.inode == inode;
         ++at)
      files.push_back(at->second.file);
    return files;
  }
  std::vector<File> all() const {
    std::vector<File> files;
    for (const auto& [key, open] : files_) files.push_back(open.file);
    return files;
  }

 private:
  struct Key {
    std::uint64_t inode = 0;
    std::uint64_t number = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Open {
    File file;
    std::uint64_t known_failures = 0;
  };
  std::map<Key, Open> files_;
  std::uint64_t next_ = 1;
};

}  // namespace stag::fuse
