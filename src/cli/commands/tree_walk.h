// A walk over everything below a directory of an NFS server, as find(1) goes: each directory before
// its entries, these in the order of their names. It reads some directories ahead, or every one of
// them would cost the time that a call to the server takes.
#pragma once

#include <memory>
#include <string>

#include "base/completion.h"
#include "base/task_group.h"
#include "cli/support/descent.h"
#include "cli/support/remote.h"

namespace stag::cli {

// A directory that is read ahead: its first entries have been asked for.
struct ListingAhead {
  explicit ListingAhead(nfs::client::Listing begun) : listing(std::move(begun)) {}
  nfs::client::Listing listing;
  stag::Completion<Outcome<std::vector<nfs::client::Entry>>> first;
};

struct TreeEntry {
  std::string path;  // below the top, "a/b"; empty: the top itself
  std::string name;
  nfs::client::Node node;
  std::size_t depth = 0;                  // of the top: 0
  bool last = true;                       // of the entries of its directory
  std::shared_ptr<ListingAhead> ahead{};  // null: it is not read ahead
  // Of the directory that it was listed in; null: it is the top.
  std::shared_ptr<const nfs::client::Handle> parent{};
  bool is_directory() const { return node.attributes.type == nfs::client::FileType::Directory; }
};

class TreeVisitor {
 public:
  // An entry that is not wanted is as good as not there.
  virtual bool wants(const TreeEntry&) const { return true; }
  // Whether enter() will say so, and does nothing before without which a directory cannot be read:
  // it may be read ahead.
  virtual bool is_sure_to_enter(const TreeEntry& directory) const = 0;
  // Whether the walk goes into it, if it is a directory.
  virtual Task<bool> enter(const TreeEntry& entry) = 0;
  // After the entries of a directory, also of one that was not gone into.
  virtual Task<void> leave(const TreeEntry&) { co_return; }
  // A directory that cannot be read or ends the walk, or an entry that cannot be looked at; the
  // walk goes on behind it.
  virtual void trouble(const TreeEntry& entry, const nfs::client::Error& error) = 0;

 protected:
  ~TreeVisitor() = default;
};

class TreeWalk {
 public:
  // Both outlive the Task.
  TreeWalk(Run& run, Remote& remote, TreeVisitor& visitor)
      : run_(run), remote_(remote), visitor_(visitor) {}

  // Ends early when the command is interrupted.
  Task<Ok> walk(TreeEntry top);

 private:
  Task<Ok> walk_from(TreeEntry top);
  Task<void> visit(TreeEntry entry);
  Task<void> go_into(const TreeEntry& directory);
  Task<void> visit_all(std::vector<TreeEntry> entries);
  nfs::client::Listing listing_of(const TreeEntry& directory);
  // Whether it is read ahead now.
  bool read_ahead(TreeEntry& entry);
  static Task<void> read_first(std::shared_ptr<ListingAhead> ahead);
  Task<Outcome<std::vector<TreeEntry>>> entries_of(const TreeEntry& directory);

  Run& run_;
  Remote& remote_;
  TreeVisitor& visitor_;
  Descent descent_;
  std::uint64_t kept_ = 0;  // entries, of the directories from the top down to here
  std::size_t ahead_ = 0;   // directories
  TaskGroup reading_ahead_;
};

}  // namespace stag::cli
