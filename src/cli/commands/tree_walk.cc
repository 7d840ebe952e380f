#include "cli/commands/tree_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "cli/support/entry_trouble.h"

namespace stag::cli {

using nfs::client::Entry;
using nfs::client::Error;
using nfs::client::Listing;
using nfs::client::Node;

namespace {

// Of one directory, and in all: the memory of a walk is bounded by that many replies.
constexpr std::size_t kAhead = 8;
constexpr std::size_t kMostAhead = 256;

}  // namespace

Task<Ok> TreeWalk::walk(TreeEntry top) {
  return joined(reading_ahead_, walk_from(std::move(top)));
}

Task<Ok> TreeWalk::walk_from(TreeEntry top) {
  co_await visit(std::move(top));
  co_return Ok{};
}

Task<void> TreeWalk::visit(TreeEntry entry) {
  const bool inside = co_await visitor_.enter(entry);
  if (!entry.is_directory()) co_return;
  if (inside && !run_.cancel.cancelled()) co_await go_into(entry);
  co_await visitor_.leave(entry);
}

Task<void> TreeWalk::go_into(const TreeEntry& directory) {
  const nfs::client::Attributes& attributes = directory.node.attributes;
  const Descent::Step step(descent_,
                           {directory.node.handle, attributes.file_system_id, attributes.file_id});
  if (step.refusal())
    co_return visitor_.trouble(directory, Error::of_local(std::string(*step.refusal())));
  Outcome<std::vector<TreeEntry>> entries = co_await entries_of(directory);
  if (!entries) co_return visitor_.trouble(directory, entries.error());
  const std::size_t count = entries->size();
  kept_ += count;
  co_await visit_all(*std::move(entries));
  kept_ -= count;
}

Task<void> TreeWalk::visit_all(std::vector<TreeEntry> entries) {
  std::size_t ahead = 0;
  auto next = entries.begin();
  for (TreeEntry& entry : entries) {
    if (run_.cancel.cancelled()) co_return;
    for (; next != entries.end() && ahead < kAhead; ++next)
      if (read_ahead(*next)) ++ahead;
    if (entry.ahead) --ahead, --ahead_;
    co_await visit(std::move(entry));
  }
}

Listing TreeWalk::listing_of(const TreeEntry& directory) {
  return remote_.files().list(directory.node.handle, Listing::Detail::Attributes,
                              Listing::kMostKept - kept_);
}

bool TreeWalk::read_ahead(TreeEntry& entry) {
  if (!entry.is_directory() || ahead_ == kMostAhead || !visitor_.is_sure_to_enter(entry))
    return false;
  auto ahead = std::make_shared<ListingAhead>(listing_of(entry));
  reading_ahead_.add(read_first(ahead));
  entry.ahead = std::move(ahead);
  ++ahead_;
  return true;
}

Task<void> TreeWalk::read_first(std::shared_ptr<ListingAhead> ahead) {
  Outcome<std::vector<Entry>> first = std::vector<Entry>{};
  try {
    first = co_await ahead->listing.next();
  } catch (const std::bad_alloc&) {
    first = Failure{Error::of_local("there was no memory for it")};
  }
  ahead->first.complete(std::move(first));
}

Task<Outcome<std::vector<TreeEntry>>> TreeWalk::entries_of(const TreeEntry& directory) {
  std::vector<TreeEntry> entries;
  const auto parent = std::make_shared<const nfs::client::Handle>(directory.node.handle);
  const std::shared_ptr<ListingAhead> ahead =
      directory.ahead ? directory.ahead : std::make_shared<ListingAhead>(listing_of(directory));
  if (!directory.ahead) co_await read_first(ahead);
  Outcome<std::vector<Entry>> batch = co_await ahead->first;
  for (; !batch || !batch->empty(); batch = co_await ahead->listing.next()) {
    if (!batch) co_return Failure{batch.error()};
    for (Entry& entry : *batch) {
      TreeEntry found;
      found.path = directory.path.empty() ? entry.name : directory.path + "/" + entry.name;
      found.depth = directory.depth + 1;
      found.last = false;
      found.parent = parent;
      if (entry.attributes && entry.handle) {
        found.node = {*entry.handle, *entry.attributes};
      } else {
        const Outcome<Node> node =
            co_await remote_.files().lookup(directory.node.handle, entry.name);
        // Otherwise the entry was removed meanwhile.
        if (!node && node.error().is(nfs::client::Status::NoEntry)) continue;
        const std::optional<Error> trouble = node ? std::nullopt : entry_trouble(node.error());
        if (trouble) visitor_.trouble(found, *trouble);
        if (trouble) continue;
        if (!node) co_return Failure{node.error()};
        found.node = *node;
      }
      found.name = std::move(entry.name);
      if (visitor_.wants(found)) entries.push_back(std::move(found));
    }
  }
  std::sort(entries.begin(), entries.end(),
            [](const TreeEntry& a, const TreeEntry& b) { return a.name < b.name; });
  if (!entries.empty()) entries.back().last = true;
  co_return entries;
}

}  // namespace stag::cli
