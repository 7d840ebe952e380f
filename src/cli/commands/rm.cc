#include <fmt/format.h>

#include <functional>
#include <new>

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

// Removes a directory with all that is below it, as far as possible.
class Emptying {
 public:
  // `tell` hears of each object that cannot be removed; of an interruption it hears once, as of a
  // server that does not answer any more.
  using Tell = std::function<void(const std::string& path, const Error& error)>;
  Emptying(Remote& remote, Tell tell) : remote_(remote), tell_(std::move(tell)) {}

  // False: something is left. `path` ends with the name in `parent`.
  Task<bool> remove_tree(Handle parent, std::string path, Node directory) {
    const Descent::Step step(descent_, {directory.handle, directory.attributes.file_system_id,
                                        directory.attributes.file_id});
    if (step.refusal()) co_return gone(path, Error::of_local(std::string(*step.refusal())));
    // The names are read first: a removal may change the cookies of the rest.
    const Outcome<std::vector<Entry>> entries = co_await all_of(directory.handle);
    if (!entries) co_return gone(path, entries.error());
    TaskGroup group;
    bool emptied = true;
    co_await joined(group, remove_all(directory.handle, path, *entries, group, emptied));
    kept_ -= entries->size();
    if (!emptied) co_return false;
    const Outcome<Ok> removed = co_await remote_.files().rmdir(parent, place_of(path).name);
    co_return removed || gone(path, removed.error());
  }

 private:
  // Those that are no directories in `group`.
  Task<Ok> remove_all(Handle directory, const std::string& path, const std::vector<Entry>& entries,
                      TaskGroup& group, bool& emptied) {
    for (const Entry& entry : entries) {
      if (silent_) emptied = false;
      if (silent_) break;
      std::string below = path + "/" + entry.name;
      const Outcome<Node> node = co_await remote_.files().lookup(directory, entry.name);
      if (!node) {
        emptied &= gone(below, node.error());
      } else if (node->attributes.type == nfs::client::FileType::Directory) {
        const bool removed = co_await remove_tree(directory, std::move(below), *node);
        emptied &= removed;
      } else {
        co_await group.at_most(kInFlight - 1);
        group.add(remove(directory, std::move(below), emptied));
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

  Task<void> remove(Handle directory, std::string path, bool& emptied) {
    Outcome<Ok> removed{Ok{}};
    try {
      removed = co_await remote_.files().remove(directory, place_of(path).name);
    } catch (const std::bad_alloc&) {
      removed = Failure{Error::of_local("there was no memory for it")};
    }
    if (!removed) emptied &= gone(path, removed.error());
  }

  // Whether the object that could not be removed is gone, by another client; else it is told.
  bool gone(const std::string& path, const Error& error) {
    if (error.is(nfs::client::Status::NoEntry)) return true;
    // What is left would wait for the server in vain.
    const bool told = silent_ && error.kind == Error::Kind::Call;
    silent_ = silent_ || error.kind == Error::Kind::Call;
    if (!told) tell_(path, error);
    return false;
  }

  Remote& remote_;
  const Tell tell_;
  Descent descent_;
  std::size_t kept_ = 0;  // entries, of the directories from the top down to here
  bool silent_ = false;   // the server, as far as is known
};

class Rm final : public RemoteCommand {
 public:
  About about() const override {
    return {"rm", "remove files, or directories with all that is in them",
            "  stag rm -r nfs://server/data/old\n"};
  }
  void declare(Arguments& arguments) override {
    arguments.flag("-r,-R,--recursive", recursive_, "directories, with all that is in them");
    arguments.flag("-f,--force", force_, "what does not exist is no error");
    declare_urls(arguments, "what to remove");
  }

 private:
  Task<Outcome<Ok>> act(Run& run, Remote& remote) override {
    const Place place = place_of(remote.slashed_path());
    const Outcome<Handle> parent = co_await parent_of(remote, place);
    Outcome<Ok> done{Ok{}};
    if (parent)
      done = co_await remove(run, remote, *parent, place);
    else
      done = Failure{parent.error()};
    if (!done && force_ && done.error().is(nfs::client::Status::NoEntry)) co_return Ok{};
    co_return done;
  }

  Task<Outcome<Ok>> remove(Run& run, Remote& remote, Handle parent, Place place) {
    const Outcome<Node> node = co_await remote.entry(parent, place);
    if (!node) co_return Failure{node.error()};
    if (node->attributes.type != nfs::client::FileType::Directory)
      co_return co_await remote.files().remove(parent, place.name);
    if (!recursive_)
      co_return Failure{Error::of_local(fmt::format(
          "'{}' is a directory; remove it with 'stag rm -r'", to_string(remote.url())))};
    std::string path = remote.url().path;
    while (path.ends_with('/')) path.pop_back();
    const auto tell = [this](const std::string& left, const Error& error) {
      if (!error.cancelled()) complain(fmt::format("'{}': {}", left, explained(error)));
    };
    Emptying emptying(remote, tell);
    const bool removed = co_await emptying.remove_tree(parent, std::move(path), *node);
    if (removed) co_return Ok{};
    if (!run.cancel.cancelled()) co_return Failure{Error::of_local("")};
    co_return Failure{Error::of_call({"remove", {}}, rpc::CallError::transport(Reason::Cancelled))};
  }

  bool recursive_ = false, force_ = false;
};

}  // namespace

std::unique_ptr<Command> make_rm() {
  return std::make_unique<Rm>();
}

}  // namespace stag::cli
