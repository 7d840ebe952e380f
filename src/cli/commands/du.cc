#include <fmt/format.h>

#include <set>

#include "cli/commands.h"
#include "cli/commands/tree_command.h"
#include "cli/support/format.h"
#include "cli/support/json_list.h"
#include "cli/support/output.h"

namespace stag::cli {
namespace {

using nfs::client::Attributes;

class Du final : public TreeCommand {
 public:
  About about() const override {
    return {"du", "show how much space directories use on the server",
            "  stag du -sh nfs://server/data/home\n"
            "  stag du -h --max-depth 1 nfs://server/data | sort -h\n",
            "A file with several names counts once. Sizes are in units of 1024 bytes, as those of "
            "du(1).\n"
            "JSON: 'used' in bytes; one above 2^53 is in 'used_exact' as a string, too.\n"};
  }
  void declare(Arguments& arguments) override {
    arguments.human_readable(human_, "sizes like 4.0K, as sort -h orders them");
    arguments.flag("-s,--summarize", sum_, "one line for each URL");
    arguments.flag("-a,--all", files_, "lines for files, too");
    arguments.flag("-b,--bytes", bytes_, "lengths of files in bytes, not the space that they take");
    arguments.number("-d,--max-depth", max_depth_, 0, Descent::kMostDepth,
                     "lines for what is this far below the URL [all]");
    arguments.flag("--json", json_, "an array of objects");
    declare_urls(arguments, "directory or file");
  }
  Exit run() override {
    if (sum_ && (files_ || max_depth_.value_or(0) != 0))
      return misused("-s is --max-depth 0, and does not go with -a or another --max-depth");
    if (sum_) max_depth_ = 0;
    return RemoteCommand::run();
  }

 private:
  Task<Outcome<Ok>> act(Run& run, Remote& remote) override {
    totals_.clear();
    return walk_all(run, remote, nfs::client::Links::FollowAllButLast);
  }
  void finish() override {
    if (json_) list_.end();
  }

  bool is_sure_to_enter(const TreeEntry&) const override { return true; }
  Task<bool> enter(const TreeEntry& entry) override {
    const std::uint64_t size = size_of(entry.node.attributes);
    if (entry.is_directory()) {
      totals_.push_back(size);
    } else {
      if (!totals_.empty()) totals_.back() += size;
      if (files_ || entry.depth == 0) print(entry, size);
    }
    co_return true;
  }
  Task<void> leave(const TreeEntry& directory) override {
    const std::uint64_t total = totals_.back();
    totals_.pop_back();
    if (!totals_.empty()) totals_.back() += total;
    print(directory, total);
    co_return;
  }

  // What it adds: nothing for a further name of a file.
  std::uint64_t size_of(const Attributes& attributes) {
    const bool directory = attributes.type == nfs::client::FileType::Directory;
    if (!directory && attributes.links > 1 &&
        !counted_.emplace(attributes.file_system_id, attributes.file_id).second)
      return 0;
    if (!bytes_) return attributes.used;
    return directory ? 0 : attributes.size;
  }
  void print(const TreeEntry& entry, std::uint64_t size) {
    if (max_depth_ && entry.depth > *max_depth_) return;
    const std::string path = server_path(entry);
    if (json_) {
      Json object;
      object.set_bytes("path", path).set("url", top_url()).set_quantity("used", size);
      list_.add(object);
    } else {
      const std::uint64_t units = bytes_ ? size : size / 1024 + (size % 1024 != 0 ? 1 : 0);
      put("{}\t{}\n", human_ ? short_size(size) : std::to_string(units), shown(path));
    }
  }

  std::vector<std::uint64_t> totals_;  // of the directories from the top down to here
  std::set<std::pair<std::uint64_t, std::uint64_t>> counted_;  // files with several names
  std::optional<std::uint32_t> max_depth_;
  bool human_ = false, sum_ = false, files_ = false, bytes_ = false, json_ = false;
  JsonList list_;
};

}  // namespace

std::unique_ptr<Command> make_du() {
  return std::make_unique<Du>();
}

}  // namespace stag::cli
