#include <fmt/format.h>

#include "base/task_group.h"
#include "cli/commands.h"
#include "cli/commands/remote_command.h"
#include "cli/support/descent.h"

namespace stag::cli {
namespace {

using nfs::client::Entry;
using nfs::client::Error;
using nfs::client::Handle;
using nfs::client::Listing;
using nfs::client::Node;

constexpr std::size_t kInFlight = 16;

// Removes the entries of a directory. The names are read first: a removal may change the cookies of
// the rest.
class Emptying {
 public:
  explicit Emptying(Remote& remote) : remote_(remote) {}

  Task<Outcome<Ok>> empty(Handle directory) {
    const Outcome<std::vector<Entry>> entries = co_await all_of(directory);
    if (!entries) co_return Failure{entries.error()};
    TaskGroup group;
    std::optional<Error> failure;
    co_await joined(group, remove_all(directory, *entries, group, failure));
    kept_ -= entries->size();
    if (failure) co_return Failure{*failure};
    co_return Ok{};
  }

  Task<Outcome<Ok>> remove_tree(Handle parent, std::string name, Node directory) {
    const Descent::Step step(descent_, {directory.handle, directory.attributes.file_system_id,
                                        directory.attributes.file_id});
    if (step.refusal())
      co_return Failure{
          Error::of_local(fmt::format("cannot remove '{}': {}", name, *step.refusal()))};
    const Outcome<Ok> emptied = co_await empty(directory.handle);
    if (!emptied) co_return emptied;
    co_return co_await remote_.files().rmdir(parent, std::move(name));
  }

 private:
  // Those that are no directories in `group`; until one cannot be removed.
  Task<Ok> remove_all(Handle directory, const std::vector<Entry>& entries, TaskGroup& group,
                      std::optional<Error>& failure) {
    for (const Entry& entry : entries) {
      if (failure) break;
      const Outcome<Node> node = co_await remote_.files().lookup(directory, entry.name);
      if (!node) {
        note(node, failure);
      } else if (node->attributes.type == nfs::client::FileType::Directory) {
        note(co_await remove_tree(directory, entry.name, *node), failure);
      } else {
        co_await group.at_most(kInFlight - 1);
        group.add(remove(directory, entry.name, failure));
      }
    }
    co_return Ok{};
  }

  Task<Outcome<std::vector<Entry>>> all_of(Handle directory) {
    std::vector<Entry> entries;
    Listing listing =
        remote_.files().list(directory, Listing::Detail::Names, Listing::kMostKept - kept_);
    for (;;) {
      Outcome<std::vector<Entry>> batch = co_await listing.next();
      if (!batch) co_return Failure{batch.error()};
      if (batch->empty()) break;
      for (Entry& entry : *batch) entries.push_back(std::move(entry));
    }
    kept_ += entries.size();
    co_return entries;
  }

  Task<void> remove(Handle directory, std::string name, std::optional<Error>& failure) {
    note(co_await remote_.files().remove(directory, std::move(name)), failure);
  }

  template <class T>
  static void note(const Outcome<T>& outcome, std::optional<Error>& failure) {
    // An entry that another client has removed counts as removed.
    const bool trouble = !outcome && !outcome.error().is(nfs::client::Status::NoEntry);
    if (trouble && !failure) failure = outcome.error();
  }

  Remote& remote_;
  Descent descent_;
  std::size_t kept_ = 0;  // entries, of the directories from the top down to here
};

class Rm final : public RemoteCommand {
 public:
  About about() const override {
    return {"rm", "remove files, or directories with all that is in them",
            "  stag rm -r nfs://server/data/old\n"};
  }
  void declare(Arguments& arguments) override {
    arguments.flag("-r,--recursive", recursive_, "directories, with all that is in them");
    arguments.flag("-f,--force", force_, "what does not exist is no error");
    declare_urls(arguments, "what to remove");
  }

 private:
  Task<Outcome<Ok>> act(Run&, Remote& remote) override {
    const Place place = place_of(remote.slashed_path());
    const Outcome<Handle> parent = co_await parent_of(remote, place);
    Outcome<Ok> done{Ok{}};
    if (parent)
      done = co_await remove(remote, *parent, place);
    else
      done = Failure{parent.error()};
    if (!done && force_ && done.error().is(nfs::client::Status::NoEntry)) co_return Ok{};
    co_return done;
  }

  Task<Outcome<Ok>> remove(Remote& remote, Handle parent, Place place) {
    const Outcome<Node> node = co_await remote.entry(parent, place);
    if (!node) co_return Failure{node.error()};
    if (node->attributes.type != nfs::client::FileType::Directory)
      co_return co_await remote.files().remove(parent, place.name);
    if (!recursive_)
      co_return Failure{Error::of_local(fmt::format(
          "'{}' is a directory; remove it with 'stag rm -r'", to_string(remote.url())))};
    Emptying emptying(remote);
    co_return co_await emptying.remove_tree(parent, place.name, *node);
  }

  bool recursive_ = false, force_ = false;
};

}  // namespace

std::unique_ptr<Command> make_rm() {
  return std::make_unique<Rm>();
}

}  // namespace stag::cli
