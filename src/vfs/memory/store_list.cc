// Listing a directory: a page of entries is copied under the directory's lock; then, if nodes are
// wanted, the attributes of each object are read under its own lock; the sink is called without any
// lock.
#include <string>
#include <vector>

#include "vfs/memory/store.h"

namespace stag::vfs::memory {
namespace {

constexpr std::size_t kEntryCost = 24;
constexpr std::size_t kNodeCost = 160;
constexpr std::uint32_t kMaxBudget = 1 << 20;

}  // namespace

struct Store::Page {
  struct ListedEntry {
    std::uint32_t name_start;
    std::uint32_t name_length;
    InodeId inode;
    std::uint64_t cookie;
  };
  std::string names;
  std::vector<ListedEntry> items;
  bool complete = false;  // nothing follows

  void add(std::string_view name, InodeId inode, std::uint64_t cookie) {
    items.push_back({static_cast<std::uint32_t>(names.size()),
                     static_cast<std::uint32_t>(name.size()), inode, cookie});
    names += name;
  }
  std::string_view name_of(const ListedEntry& item) const {
    return std::string_view(names).substr(item.name_start, item.name_length);
  }
};

void Store::collect(const Inode& directory, const ListFrom& from, Page& page) const {
  const std::size_t budget = std::min(from.budget, kMaxBudget);
  const std::size_t overhead = kEntryCost + (from.with_nodes ? kNodeCost : 0);
  std::size_t cost = 0;
  if (from.cookie < kDotCookie) page.add(".", directory.id, kDotCookie);
  if (from.cookie < kDotDotCookie) page.add("..", directory.parent, kDotDotCookie);
  page.complete = directory.entries->visit_after(
      from.cookie, [&](std::string_view name, InodeId inode, std::uint64_t cookie) {
        cost += overhead + name.size();
        if (cost > budget && !page.items.empty()) return false;
        page.add(name, inode, cookie);
        return true;
      });
}

Outcome<Listed> Store::list(const Credentials& who, const Handle& directory, const ListFrom& from,
                            DirectorySink& sink) {
  const auto id = id_of(directory);
  if (!id) return Failure{id.error()};
  Listed listed;
  store_be(listed.verifier.data(), instance_);
  if (from.cookie != 0 && from.verifier && *from.verifier != listed.verifier)
    return Failure{Status::BadCookie};
  Page page;
  {
    Locked lock(*this, *id);
    Inode* inode = find(*id);
    if (inode == nullptr) return Failure{Status::Stale};
    if (!inode->is_directory()) return Failure{Status::NotDirectory};
    if (!permits(*inode, who, kMayRead)) return Failure{Status::Access};
    collect(*inode, from, page);
    if (inode->accessed <= inode->modified) inode->accessed = now_();
    listed.directory = attributes_of(*inode);
  }
  for (const Page::ListedEntry& item : page.items) {
    DirectoryEntry entry{page.name_of(item), item.inode, item.cookie, nullptr};
    Node node;
    if (from.with_nodes) {
      Locked lock(*this, item.inode);
      if (const Inode* inode = find(item.inode)) {
        node = node_of(*inode);
        entry.node = &node;
      }
    }
    if (!sink.entry(entry)) return listed;
  }
  listed.eof = page.complete;
  return listed;
}

}  // namespace stag::vfs::memory
