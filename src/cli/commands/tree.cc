#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/commands/tree_command.h"
#include "cli/support/format.h"
#include "cli/support/json_list.h"
#include "cli/support/output.h"

namespace stag::cli {
namespace {

using nfs::client::FileType;

class Tree final : public TreeCommand {
 public:
  About about() const override {
    return {"tree", "draw directories with all that is in them",
            "  stag tree -L 2 nfs://server/data\n",
            "JSON is as 'stag ls --help' says, with 'path' beside 'name'.\n"};
  }
  void declare(Arguments& arguments) override {
    arguments.flag("-a,--all", all_, "names that begin with a dot, too");
    arguments.flag("-d,--directories", directories_only_, "directories only");
    arguments.number("-L,--max-depth", max_depth_, 1, Descent::kMostDepth,
                     "this far below the URL [all]");
    arguments.flag("--json", json_, "an array of objects");
    declare_urls(arguments, "directory");
  }

 private:
  Task<Outcome<Ok>> act(Run& run, Remote& remote) override {
    remote_ = &remote;
    lines_.clear();
    return walk_all(run, remote, nfs::client::Links::Follow);
  }
  void finish() override {
    if (json_)
      list_.end();
    else
      put("\n{} director{}, {} file{}\n", directories_, directories_ == 1 ? "y" : "ies", files_,
          files_ == 1 ? "" : "s");
  }

  bool wants(const TreeEntry& entry) const override {
    return (all_ || !entry.name.starts_with('.')) && (!directories_only_ || entry.is_directory());
  }
  bool is_sure_to_enter(const TreeEntry& entry) const override {
    return !max_depth_ || entry.depth < *max_depth_;
  }
  Task<bool> enter(const TreeEntry& entry) override {
    if (entry.depth > 0) ++(entry.is_directory() ? directories_ : files_);
    std::string target;
    if (entry.node.attributes.type == FileType::Symlink) {
      Outcome<std::string> text =
          co_await remote_->files().readlink(entry.node.handle, entry.node.attributes.size);
      // A link that was removed meanwhile stays without a target.
      if (text) target = *std::move(text);
    }
    print(entry, target);
    co_return is_sure_to_enter(entry);
  }

  void print(const TreeEntry& entry, const std::string& target) {
    if (json_) {
      Json object = to_json(entry.name, entry.node.attributes);
      object.set_bytes("path", server_path(entry)).set("url", top_url());
      if (!target.empty()) object.set_bytes("target", target);
      list_.add(object);
      return;
    }
    if (entry.depth == 0) return put("{}\n", shown(server_path(entry)));
    lines_.resize(entry.depth);
    lines_.back() = entry.last;
    std::string stem;
    for (std::size_t i = 0; i + 1 < lines_.size(); ++i) stem += lines_[i] ? "    " : "│   ";
    put("{}{}{}{}\n", stem, entry.last ? "└── " : "├── ", shown(entry.name),
        target.empty() ? "" : " -> " + shown(target));
  }

  Remote* remote_ = nullptr;
  std::vector<bool> lines_;  // of each directory down to here: whether its last entry was drawn
  std::optional<std::uint32_t> max_depth_;
  std::uint64_t directories_ = 0, files_ = 0;
  bool all_ = false, directories_only_ = false, json_ = false;
  JsonList list_;
};

}  // namespace

std::unique_ptr<Command> make_tree() {
  return std::make_unique<Tree>();
}

}  // namespace stag::cli
