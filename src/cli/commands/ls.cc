#include <fmt/format.h>

#include <algorithm>

#include "base/task_group.h"
#include "cli/commands.h"
#include "cli/support/arguments.h"
#include "cli/support/format.h"
#include "cli/support/json.h"
#include "cli/support/output.h"
#include "cli/support/remote.h"

namespace stag::cli {
namespace {

using nfs::client::Attributes;
using nfs::client::Entry;
using nfs::client::Error;
using nfs::client::Links;
using nfs::client::Listing;
using nfs::client::Node;

constexpr std::size_t kLinksInFlight = 16;

constexpr std::string_view kLsNotes =
    "A URL of a symbolic link lists what it leads to; with -l or -d, and when it leads to\n"
    "nothing, it is the link that is listed.\n"
    "On a terminal, control characters in names are shown as \\ooo, octal; else names are\n"
    "written byte for byte.\n"
    "JSON: 'url' is the URL that was listed. A name that is no UTF-8 is in 'name_bytes',\n"
    "percent-encoded, while 'name' has its text only. 'fileid' and 'fsid' are strings, 'size'\n"
    "and 'used' numbers; one above 2^53 is in 'size_exact' or 'used_exact' as a string, too.\n";

class Ls final : public Command {
 public:
  About about() const override {
    return {"ls", "list directories",
            "  stag ls -lh nfs://server/data/reports\n"
            "  stag ls --json nfs://server/data | jq -r '.[] | select(.size > 1000000) | .name'\n",
            kLsNotes};
  }
  void declare(Arguments& arguments) override {
    arguments.human_readable(human_, "with -l: sizes like 4.0 KiB");
    arguments.flag("-l,--long", long_,
                   "type and mode, links, owner, size and time of each, and where links lead");
    arguments.flag("-a,--all", all_, "names that begin with a dot, too");
    arguments.flag("-d,--directory", itself_, "the directory itself, not its entries");
    arguments.flag("--json", json_, "one array of objects for all URLs");
    remote_.declare(arguments);
    arguments.positionals("URL", urls_, 1, "directory or file");
  }
  Exit run() override {
    return on_loop([this](Run& run) { return work(run); });
  }

 private:
  struct Line {
    std::string name;
    std::optional<Attributes> attributes{};
    std::optional<nfs::client::Handle> handle{};
    std::string target{};  // of a symbolic link
  };

  Task<Exit> work(Run& run) {
    Json array = Json::array();
    Exit exit = Exit::Done;
    for (const std::string& url : urls_) {
      const Exit one = co_await list(run, url, array);
      if (one != Exit::Done) exit = one;
      if (run.cancel.cancelled()) break;
    }
    if (json_) put("{}\n", array.text());
    co_return exit;
  }

  Task<Exit> list(Run& run, std::string url, Json& array) {
    Outcome<std::unique_ptr<Remote>> remote = co_await Remote::open(run, url, remote_);
    if (!remote) co_return failed(remote.error());
    Outcome<std::vector<Line>> lines = co_await lines_of(**remote);
    if (lines && (long_ || json_)) co_await read_targets(**remote, *lines);
    co_await (*remote)->close();
    if (!lines) co_return failed(lines.error());
    if (run.cancel.cancelled()) co_return failed("interrupted");
    if (urls_.size() > 1 && !json_) put("{}:\n", shown(url));
    for (const Line& line : *lines) print(line, to_string((*remote)->url()), array);
    co_return Exit::Done;
  }

  Task<Outcome<Node>> named(Remote& remote) {
    const bool link_itself = (long_ || itself_) && !remote.url().path.ends_with('/');
    const Links links = link_itself ? Links::FollowAllButLast : Links::Follow;
    const Outcome<Node> node = co_await remote.files().walk(remote.path(), links);
    const bool leads_nowhere = !node && (node.error().is(nfs::client::Status::NoEntry) ||
                                         node.error().kind == Error::Kind::Links);
    if (!leads_nowhere) co_return node;
    Outcome<Node> link = co_await remote.files().walk(remote.path(), Links::FollowAllButLast);
    if (link && link->attributes.type == nfs::client::FileType::Symlink) co_return link;
    co_return node;
  }

  Task<Outcome<std::vector<Line>>> lines_of(Remote& remote) {
    std::vector<Line> lines;
    const Outcome<Node> node = co_await named(remote);
    if (!node) co_return Failure{node.error()};
    if (node->attributes.type != nfs::client::FileType::Directory || itself_) {
      const std::string& path = remote.path();
      lines.push_back({path.empty() ? "." : path, node->attributes, node->handle});
      co_return lines;
    }
    const bool detailed = long_ || json_;
    Listing listing = remote.files().list(
        node->handle, detailed ? Listing::Detail::Attributes : Listing::Detail::Names,
        Listing::kMostKept);
    for (;;) {
      Outcome<std::vector<Entry>> batch = co_await listing.next();
      if (!batch) co_return Failure{batch.error()};
      if (batch->empty()) break;
      for (Entry& entry : *batch) {
        if (!all_ && entry.name.starts_with('.')) continue;
        if (detailed && !(entry.attributes && entry.handle))
          co_await look(remote, node->handle, entry);
        lines.push_back({std::move(entry.name), entry.attributes, entry.handle});
      }
    }
    std::sort(lines.begin(), lines.end(),
              [](const Line& a, const Line& b) { return a.name < b.name; });
    co_return lines;
  }

  // A server may omit attributes in READDIRPLUS; an entry that was removed meanwhile is listed
  // without them.
  static Task<void> look(Remote& remote, nfs::client::Handle directory, Entry& entry) {
    const Outcome<Node> found = co_await remote.files().lookup(directory, entry.name);
    if (!found) co_return;
    entry.attributes = found->attributes;
    entry.handle = found->handle;
  }

  static Task<void> read_targets(Remote& remote, std::vector<Line>& lines) {
    TaskGroup links;
    for (Line& line : lines) {
      if (!line.handle || line.attributes->type != nfs::client::FileType::Symlink) continue;
      co_await links.at_most(kLinksInFlight - 1);
      links.add(read_target(remote, line));
    }
    co_await links.join();
  }
  // A link that was removed meanwhile stays without a target.
  static Task<void> read_target(Remote& remote, Line& line) {
    Outcome<std::string> target =
        co_await remote.files().readlink(*line.handle, line.attributes->size);
    if (target) line.target = *std::move(target);
  }

  void print(const Line& line, const std::string& url, Json& array) const {
    if (json_) {
      Json object = to_json(line.name, line.attributes.value_or(Attributes{}));
      object.set("url", url);
      if (!line.target.empty()) object.set_bytes("target", line.target);
      array.add(std::move(object));
    } else if (long_ && line.attributes) {
      const Attributes& a = *line.attributes;
      const std::string size =
          human_ ? human_size(static_cast<double>(a.size)) : std::to_string(a.size);
      put("{} {:>3} {:>6} {:>6} {:>12} {} {}{}\n", mode_text(a), a.links, a.uid, a.gid, size,
          time_text(a.modified), shown(line.name),
          line.target.empty() ? "" : " -> " + shown(line.target));
    } else {
      put("{}\n", shown(line.name));
    }
  }

  RemoteOptions remote_;
  std::vector<std::string> urls_;
  bool long_ = false, human_ = false, all_ = false, itself_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_ls() {
  return std::make_unique<Ls>();
}

}  // namespace stag::cli
