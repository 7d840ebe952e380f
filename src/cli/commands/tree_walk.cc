#include "cli/commands/tree_walk.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/support/entry_trouble.h"

namespace stag::cli {

using nfs::client::Entry;
using nfs::client::Error;
using nfs::client::Listing;
using nfs::client::Node;

Task<void> TreeWalk::walk(TreeEntry entry) {
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
  for (TreeEntry& entry : *entries)
    if (!run_.cancel.cancelled()) co_await walk(std::move(entry));
  kept_ -= count;
}

Task<Outcome<std::vector<TreeEntry>>> TreeWalk::entries_of(const TreeEntry& directory) {
  std::vector<TreeEntry> entries;
  Listing listing = remote_.files().list(directory.node.handle, Listing::Detail::Attributes,
                                         Listing::kMostKept - kept_);
  for (;;) {
    Outcome<std::vector<Entry>> batch = co_await listing.next();
    if (!batch) co_return Failure{batch.error()};
    if (batch->empty()) break;
    for (Entry& entry : *batch) {
      TreeEntry found;
      found.path = directory.path.empty() ? entry.name : directory.path + "/" + entry.name;
      found.depth = directory.depth + 1;
      found.last = false;
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
