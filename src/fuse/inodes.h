// Inodes: the objects that the kernel knows of a mount, by the numbers that it knows them by. The
// kernel counts how often it was told a number, and forgets that many at once; until then, while it
// is open, and while something refers to it, the number stands for one file handle.
//
// Thread: the loop of the Mount.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/unique_function.h"
#include "nfs/client/protocol/types.h"

namespace stag::fuse {

struct Inode {
  nfs::client::Handle handle;
  std::uint64_t lookups = 0;
  std::uint32_t opens = 0;
  std::uint32_t references = 0;  // Inodes::Reference
  // As of the last open; what the kernel has cached is good while they are the same.
  std::optional<nfs::client::Attributes> opened_with{};
  std::uint64_t told = 0;        // when the kernel was last told its attributes, or changed them
  std::uint64_t names_lost = 0;  // when names were last taken from this directory
  bool pinned = false;           // one of the opens ends when the kernel forgets it
  std::size_t name = 0;          // a hash of the one that the kernel was told last; 0: none
};

class Inodes {
 public:
  static constexpr std::uint64_t kRoot = 1;  // FUSE_ROOT_ID

  class Reference;

  explicit Inodes(const nfs::client::Handle& root);
  // Runs `gone` with each number that stands for nothing any more. It throws nothing.
  void set_on_gone(UniqueFunction<void(std::uint64_t)> gone) { on_gone_ = std::move(gone); }

  // Null for a number that stands for nothing.
  Inode* find(std::uint64_t number);
  // Null where no number stands for the object.
  Inode* find(const nfs::client::Handle& handle);
  // 0 where there is none.
  std::uint64_t number_of(const nfs::client::Handle& handle) const;
  // The number of the object, which the kernel is told once more.
  std::uint64_t enter(const nfs::client::Handle& handle);
  // This and close() need no memory: the kernel does not say it twice.
  void forget(std::uint64_t number, std::uint64_t lookups) noexcept;

  // The kernel was told the object by this name; the last one of each object is remembered.
  void call(std::uint64_t number, std::uint64_t parent, std::string_view name);
  void rename(std::uint64_t parent, std::string_view name, std::uint64_t new_parent,
              std::string_view new_name);
  // What the kernel takes for the object of that name; 0: not known. Others may have changed that.
  std::uint64_t named(std::uint64_t parent, std::string_view name) const;

  // What the kernel was told, and what it has changed, in the order of that: a listing may be
  // older. Numbers that the kernel does not know are passed over.
  std::uint64_t now() const { return time_; }
  void on_told(std::uint64_t number);
  void on_names_lost(std::uint64_t directory);

  // How often all files together are open.
  std::uint64_t opens() const { return opens_; }
  void open(Inode& inode) {
    ++inode.opens;
    ++opens_;
  }
  // Whether this was the last one of the file.
  bool close(std::uint64_t number) noexcept;
  std::size_t size() const { return inodes_.size(); }

 private:
  using Entry = std::unordered_map<std::uint64_t, Inode>::iterator;
  static std::string_view key(const nfs::client::Handle& handle);
  static std::size_t hash(std::uint64_t parent, std::string_view name);
  void call(Inode& inode, std::uint64_t number, std::size_t name);
  void erase_unused(Entry entry) noexcept;

  std::unordered_map<std::uint64_t, Inode> inodes_;
  std::unordered_map<std::string_view, std::uint64_t> numbers_;  // by the handles in `inodes_`
  // By hashes: two names that share one only make a hint wrong.
  std::unordered_map<std::size_t, std::uint64_t> names_;
  // Numbers are not used twice, so that a late use of one meets no other file.
  std::uint64_t next_ = kRoot + 1;
  std::uint64_t opens_ = 0;
  std::uint64_t time_ = 0;  // counts what happens
  UniqueFunction<void(std::uint64_t)> on_gone_;
};

// Something of the file goes on, or is kept, that knows it by its number: though the kernel forgets
// the file, a program that looks it up meets the same number, until this is destroyed. No open, so
// that nothing waits for it that waits for close(2). The Inodes outlive it.
class Inodes::Reference {
 public:
  // A number that stands for nothing is none.
  Reference(Inodes& all, std::uint64_t number);
  ~Reference();
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;

 private:
  Inodes& all_;
  std::uint64_t number_;
};

}  // namespace stag::fuse
