// OpenFiles: what programs have open, by inode and by the number that the kernel calls an open(2)
// by, and who may have locks by it. The kernel does not say all owners whose locks end with an
// open(2): it unlocks none of F_OFD_SETLK.
//
// Thread: the loop of the Mount.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "fuse/ongoing.h"
#include "fuse/silly_files.h"
#include "nfs/client/protocol/types.h"

namespace stag::fuse {

class OpenFiles {
 public:
  using File = nfs::client::File;
  using LockOwner = nfs::client::LockOwner;

  struct Open {
    File file;
    std::uint64_t known_failures = 0;
    bool direct = false;  // the kernel caches no data of it
    bool writes = false;
    bool reads = true;
    std::vector<LockOwner> lock_owners{};
  };
  // With room for what is left to be done once it is closed, when there may be no memory.
  struct Ending {
    explicit Ending(Open of) : open(std::move(of)) {}

    Open open;
    std::optional<SillyFiles::Removal> removal{};   // of the name that kept the file until then
    std::optional<Ongoing::Operation> unlocking{};  // while there are locks that nobody has
    bool closed = false;                            // by the server
    bool underway = false;                          // what is left is being done
  };
  struct Key {
    std::uint64_t inode = 0;
    std::uint64_t number = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  using Files = std::map<Key, Ending>;
  using Node = Files::node_type;

  // The number of a new open.
  std::uint64_t add(std::uint64_t inode, Open open) {
    files_.emplace(Key{inode, next_}, std::move(open));
    return next_++;
  }
  bool is_direct(std::uint64_t inode, std::uint64_t number) const {
    const auto found = files_.find({inode, number});
    return found != files_.end() && found->second.open.direct;
  }
  bool is_any_cached(std::uint64_t inode) const {
    for (auto at = files_.lower_bound({inode, 0}); is_of(at, inode); ++at)
      if (!at->second.open.direct) return true;
    return false;
  }
  // Of the failures that lost data of the file (UnstableWrites), how many the program that has it
  // open knows of. Null: there is no such open.
  std::uint64_t* known_failures(std::uint64_t inode, std::uint64_t number) {
    const auto found = files_.find({inode, number});
    return found == files_.end() ? nullptr : &found->second.open.known_failures;
  }
  // Null: there is none.
  const File* find(std::uint64_t inode, std::uint64_t number) const {
    const auto found = files_.find({inode, number});
    return found == files_.end() ? nullptr : &found->second.open.file;
  }
  // By an open for writing that is not closed yet; null: there is none.
  const File* find_writing(std::uint64_t inode) const {
    for (auto at = files_.lower_bound({inode, 0}); is_of(at, inode); ++at)
      if (at->second.open.writes) return &at->second.open.file;
    return nullptr;
  }
  // Whether the kernel may have pages that a program has changed in a mapping, and that it has not
  // written yet. By an open that it closes it has written them before.
  bool may_have_changed_pages(std::uint64_t inode) const {
    for (auto at = files_.lower_bound({inode, 0}); is_of(at, inode); ++at) {
      const Open& open = at->second.open;
      if (open.reads && open.writes && !open.direct) return true;
    }
    return false;
  }
  std::vector<std::uint64_t> with_changed_pages() const {
    std::vector<std::uint64_t> inodes;
    for (const auto& [key, ending] : files_)
      if ((inodes.empty() || inodes.back() != key.inode) && may_have_changed_pages(key.inode))
        inodes.push_back(key.inode);
    return inodes;
  }
  // Empty where there is none. It needs no memory.
  Node remove(std::uint64_t inode, std::uint64_t number) { return files_.extract({inode, number}); }

  // The owner is about to lock by this open.
  void on_lock(std::uint64_t inode, std::uint64_t number, LockOwner owner) {
    const auto found = files_.find({inode, number});
    if (found == files_.end()) return;
    std::vector<LockOwner>& owners = found->second.open.lock_owners;
    if (std::ranges::none_of(owners, Is{owner})) owners.push_back(owner);
  }
  // The owner has no lock of the inode any more.
  void on_unlock(std::uint64_t inode, LockOwner owner) {
    for (auto at = files_.lower_bound({inode, 0}); is_of(at, inode); ++at)
      std::erase_if(at->second.open.lock_owners, Is{owner});
  }

  // All of one inode.
  std::vector<File> of(std::uint64_t inode) const {
    std::vector<File> files;
    for (auto at = files_.lower_bound({inode, 0}); is_of(at, inode); ++at)
      files.push_back(at->second.open.file);
    return files;
  }
  std::vector<File> all() const {
    std::vector<File> files;
    for (const auto& [key, ending] : files_) files.push_back(ending.open.file);
    return files;
  }

 private:
  struct Is {
    LockOwner owner;
    bool operator()(const LockOwner& one) const {
      return one.space == owner.space && one.number == owner.number;
    }
  };
  bool is_of(Files::const_iterator at, std::uint64_t inode) const {
    return at != files_.end() && at->first.inode == inode;
  }

  Files files_;
  std::uint64_t next_ = 1;
};

}  // namespace stag::fuse
