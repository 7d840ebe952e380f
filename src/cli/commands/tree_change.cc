#include "cli/commands/tree_change.h"

#include <new>

namespace stag::cli {

using nfs::client::Attributes;
using nfs::client::Error;
using nfs::client::Node;
using nfs::client::SetAttributes;

namespace {

constexpr std::size_t kChangesInFlight = 16;

}  // namespace

void TreeChange::declare_recursive(Arguments& arguments) {
  arguments.flag("-R,--recursive", recursive_,
                 "all that is below, too; symbolic links there are not followed");
}

Task<Outcome<Ok>> TreeChange::act(Run& run, Remote& remote) {
  remote_ = &remote;
  const Outcome<Ok> walked = co_await joined(changes_, walk_all(run, remote, follow_));
  const Outcome<Ok> all = ended(run);
  if (!walked) co_return walked;
  co_return all;
}

// What a change opens to this user is changed before it is read, what it may close behind that.
bool TreeChange::may_open(const TreeEntry& entry, const SetAttributes& attributes) {
  constexpr std::uint32_t kReadingByAnybody = 0555;
  return (attributes.mode.value_or(0) & ~entry.node.attributes.mode & kReadingByAnybody) != 0;
}

bool TreeChange::may_close(const TreeEntry& entry, const SetAttributes& attributes) {
  constexpr std::uint32_t kReading = 0500;
  return attributes.uid || attributes.gid ||
         (entry.node.attributes.mode & ~attributes.mode.value_or(kReading) & kReading) != 0;
}

bool TreeChange::is_sure_to_enter(const TreeEntry& directory) const {
  const std::optional<SetAttributes> attributes = change_of(directory);
  const bool waits = attributes && may_open(directory, *attributes);
  return recursive_ && (!waits || may_close(directory, *attributes));
}

Task<bool> TreeChange::enter(const TreeEntry& entry) {
  const std::optional<SetAttributes> attributes = change_of(entry);
  const bool inside = entry.is_directory() && recursive_;
  if (!attributes || (inside && may_close(entry, *attributes))) co_return inside;
  if (inside && may_open(entry, *attributes)) {
    co_await change(entry, *attributes);
    co_return true;
  }
  co_await changes_.at_most(kChangesInFlight - 1);
  changes_.add(change(entry, *attributes));
  co_return inside;
}

Task<void> TreeChange::leave(const TreeEntry& directory) {
  const std::optional<SetAttributes> attributes = change_of(directory);
  if (!recursive_ || !attributes || !may_close(directory, *attributes)) co_return;
  co_await changes_.join();
  co_await change(directory, *attributes);
}

// By its handle an object would be changed wherever it has been moved since it was listed.
Task<Outcome<Ok>> TreeChange::check_place(const TreeEntry& entry) {
  if (!entry.parent) co_return Ok{};
  const Outcome<Node> now = co_await remote_->files().lookup(*entry.parent, entry.name);
  if (!now) co_return Failure{now.error()};
  const Attributes &found = now->attributes, &listed = entry.node.attributes;
  if (found.type == listed.type && found.file_system_id == listed.file_system_id &&
      found.file_id == listed.file_id)
    co_return Ok{};
  co_return Failure{Error::of_local("it has changed meanwhile; repeat the command")};
}

Task<void> TreeChange::change(TreeEntry entry, SetAttributes attributes) {
  Outcome<Ok> changed{Ok{}};
  try {
    changed = co_await check_place(entry);
    if (changed) changed = co_await remote_->files().setattr(entry.node.handle, attributes);
  } catch (const std::bad_alloc&) {
    changed = Failure{Error::of_local("there was no memory for it")};
  }
  if (!changed) trouble(entry, changed.error());
}

}  // namespace stag::cli
