#include <chrono>
#include <vector>

#include "cli/commands.h"
#include "cli/commands/find_conditions.h"
#include "cli/commands/tree_command.h"
#include "cli/support/format.h"
#include "cli/support/json_list.h"
#include "cli/support/output.h"

namespace stag::cli {
namespace {

using nfs::client::Time;

constexpr std::string_view kFindNotes =
    "The options may have one dash, as those of find(1): 'stag find URL -name '*.o' -type f'.\n"
    "All that are given must hold; after -not or '!' one must not. Sizes are counted as find(1)\n"
    "does: N[cwbkMG], in units rounded up, +N more than that, -N less; without a letter units of\n"
    "512 bytes. So are ages, by the clock of this machine: -mtime +29 is what was changed 30 days\n"
    "ago or before.\n"
    "Paths are those on the server. JSON is as 'stag ls --help' says, with 'path' beside 'name'.\n";

class Find final : public TreeCommand {
 public:
  About about() const override {
    return {.name = "find",
            .summary = "find files by name, type, size, owner and age",
            .example =
                "  stag find nfs://server/data -name '*.log' -size +10M -mtime +29\n"
                "  stag find nfs://server/data -type f,d -empty -not -user anna\n"
                "  stag find --type f --print0 nfs://server/data | xargs -0 -n 1 echo\n",
            .notes = kFindNotes,
            .one_dash = true};
  }
  void declare(Arguments& arguments) override {
    conditions_.declare(arguments);
    arguments.number("--maxdepth", max_depth_, 0, Descent::kMostDepth,
                     "this far below the URL [all]");
    arguments.number("--mindepth", min_depth_, 0, Descent::kMostDepth, "no less far below");
    arguments.flag("--print0", zeros_, "a zero byte after each path, for xargs -0");
    arguments.flag("--json", json_, "an array of objects");
    declare_urls(arguments, "where to begin");
  }
  Exit run() override {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
    const Time begun{seconds.count(),
                     static_cast<std::uint32_t>(std::chrono::nanoseconds(now - seconds).count())};
    if (const std::optional<std::string> wrong = conditions_.understand(begun))
      return misused(*wrong);
    return RemoteCommand::run();
  }

 private:
  Task<Outcome<Ok>> act(Run& run, Remote& remote) override {
    files_ = &remote.files();
    return walk_all(run, remote, nfs::client::Links::FollowAllButLast);
  }
  void finish() override {
    if (json_) list_.end();
  }

  bool is_sure_to_enter(const TreeEntry& entry) const override {
    return !max_depth_ || entry.depth < *max_depth_;
  }
  Task<bool> enter(const TreeEntry& entry) override {
    if (entry.depth >= min_depth_ && matches(entry)) {
      bool wanted = true;
      if (conditions_.emptiness() && entry.is_directory()) wanted = co_await is_as_empty(entry);
      if (wanted) print(entry);
    }
    co_return is_sure_to_enter(entry);
  }
  bool matches(const TreeEntry& entry) const {
    return conditions_.hold_for({entry.name, server_path(entry), entry.node.attributes});
  }
  // As empty as it has to be. Asked last, since it costs a call.
  Task<bool> is_as_empty(const TreeEntry& directory) {
    nfs::client::Listing listing =
        files_->list(directory.node.handle, nfs::client::Listing::Detail::Names);
    const Outcome<std::vector<nfs::client::Entry>> first = co_await listing.next();
    // Otherwise the walk is told so when it enters it.
    if (!first && !is_sure_to_enter(directory)) trouble(directory, first.error());
    co_return first && first->empty() == *conditions_.emptiness();
  }
  void print(const TreeEntry& entry) {
    if (json_) {
      Json object = to_json(entry.name, entry.node.attributes);
      object.set_bytes("path", server_path(entry));
      object.set("url", top_url());
      list_.add(object);
    } else if (zeros_) {
      write_out(server_path(entry));
      write_out(std::string_view("\0", 1));
    } else {
      put("{}\n", shown(server_path(entry)));
    }
  }

  FindConditions conditions_;
  nfs::client::FileSystem* files_ = nullptr;  // of the URL that is walked through
  std::optional<std::uint32_t> max_depth_;
  std::uint32_t min_depth_ = 0;
  bool zeros_ = false, json_ = false;
  JsonList list_;
};

}  // namespace

std::unique_ptr<Command> make_find() {
  return std::make_unique<Find>();
}

}  // namespace stag::cli
