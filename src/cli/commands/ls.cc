#include <fmt/format.h>

#include <algorithm>

#include "base/task_group.h"
#include "cli/commands.h"
#include "cli/support/arguments.h"
#include "cli/support/descent.h"
#include "cli/support/entry_trouble.h"
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
using nfs::client::Url;

constexpr std::size_t kLinksInFlight = 16;

constexpr std::string_view kLsNotes =
    "nfs://HOST/ lists what the host exports, unless it exports '/'. Where its MOUNT service,\n"
    "which tells that, cannot be reached, standard error says so, and the root directory of\n"
    "version 4 is listed, with directories on the way to the exports.\n"
    "A URL of a symbolic link lists what it leads to; with -l or -d, and when it leads to\n"
    "nothing, it is the link that is listed.\n"
    "On a terminal, control characters in names are shown as \\ooo, octal; else names are\n"
    "written byte for byte.\n"
    "JSON: 'url' is the URL that was listed. A name that is no UTF-8 is in 'name_bytes',\n"
    "percent-encoded, while 'name' has its text only. 'fileid' and 'fsid' are strings, 'size'\n"
    "and 'used' numbers; one above 2^53 is in 'size_exact' or 'used_exact' as a string, too.\n"
    "Of what cannot be looked at there are 'name' and 'url' only.\n";

class Ls final : public Command {
 public:
  About about() const override {
    return {"ls", "list directories",
            "  stag ls -lh nfs://server/data/reports\n"
            "  stag ls --json nfs://server/data | jq -r '.[] | select(.size > 1000000) | .name'\n",
            kLsNotes};
  }
  void declare(Arguments& arguments) override {
    arguments.human_readable(human_, "with -l: sizes like 4.0K");
    arguments.flag("-l,--long", long_,
                   "type and mode, links, owner, size and time of each, and where links lead");
    arguments.flag("-a,--all", all_, "names that begin with a dot, too");
    arguments.flag("-R,--recursive", recursive_, "directories with all that is below");
    arguments.flag("-t", by_time_, "the last changed first");
    arguments.flag("-S", by_size_, "the largest first");
    arguments.flag("-r,--reverse", reverse_, "in reverse order");
    arguments.flag("-1", one_, "one name on each line, as always");
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
    std::string below{};   // of a directory that is to be listed: its path below the URL
    std::size_t depth = 0;
    std::optional<Error> trouble{};  // why it has no attributes, unless it was removed meanwhile
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
    const Outcome<Url> parsed = Url::parse(url);
    remote_.version_3_first = parsed && parsed->path == "/";
    Outcome<std::unique_ptr<Remote>> remote = co_await Remote::open(run, url, remote_);
    if (!remote && remote.error().kind == Error::Kind::Mount && Url::parse(url)->path == "/")
      co_return co_await list_exports(run, *Url::parse(url), remote.error(), array);
    if (!remote) co_return failed(remote.error());
    if (remote_.version_3_first && !parsed->version && (*remote)->url().version == 4)
      complain(
          fmt::format("{} does not tell by MOUNT what it exports; this is the root directory "
                      "of its version 4 (?mountport=PORT in the URL says where MOUNT is)",
                      parsed->host));
    Exit exit = Exit::Done;
    const Outcome<Node> node = co_await named(**remote);
    if (!node) {
      const Error why = co_await (*remote)->explained_by_exports(node.error());
      exit = failed(why);
    } else {
      exit = co_await list_all(run, **remote, *node, url, array);
    }
    co_await (*remote)->close();
    if (run.cancel.cancelled() && node) co_return failed("interrupted");
    co_return exit;
  }

  // MOUNT has no root that shows them.
  Task<Exit> list_exports(Run& run, Url url, Error why, Json& array) {
    const auto exports = co_await exports_of(run, url, remote_);
    if (!exports) co_return failed(why);
    for (const nfs::client::ListedExport& each : *exports) {
      if (json_) {
        Json clients = Json::array();
        for (const std::string& client : each.clients) clients.add(client);
        Json object;
        object.set_bytes("name", each.path)
            .set("type", std::string_view("export"))
            .set("url", to_string(url));
        object.set("clients", std::move(clients));
        array.add(std::move(object));
      } else {
        const std::string clients =
            each.clients.empty() ? "*" : fmt::format("{}", fmt::join(each.clients, " "));
        put("{}{}\n", shown(each.path), long_ ? "  " + shown(clients) : "");
      }
    }
    co_return Exit::Done;
  }

  // The URL's object, and with -R the directories below it, in the order in which they are found.
  Task<Exit> list_all(Run& run, Remote& remote, Node top, std::string url, Json& array) {
    Exit exit = Exit::Done;
    const std::string& path = remote.path();
    std::vector<Line> left{{path.empty() ? "." : path, top.attributes, top.handle}};
    std::uint64_t listed = 0;
    for (bool first = true; !left.empty() && !run.cancel.cancelled(); first = false) {
      const Line directory = std::move(left.back());
      left.pop_back();
      Outcome<std::vector<Line>> lines = co_await lines_of(remote, directory);
      if (lines && (long_ || json_)) co_await read_targets(remote, *lines);
      nfs::client::Url place = remote.url();
      if (!first) place.path += (place.path.ends_with('/') ? "" : "/") + directory.below;
      if (!lines) {
        exit =
            lines.error().cancelled() ? failed(lines.error()) : failed(place.path, lines.error());
        continue;
      }
      for (const Line& line : *lines)
        if (line.trouble)
          exit = failed(place.path + (place.path.ends_with('/') ? "" : "/") + line.name,
                        *line.trouble);
      if (recursive_ && !json_)
        put("{}{}:\n", first ? "" : "\n", shown(place.path));
      else if (urls_.size() > 1 && !json_)
        put("{}:\n", shown(url));
      for (const Line& line : *lines) print(line, to_string(place), array);
      listed += lines->size();
      if (listed > Listing::kMostKept)
        co_return failed("there are too many entries below; list parts of it");
      const bool all = add_directories(directory, first, *lines, left);
      if (!all)
        exit = failed(fmt::format("'{}': it is more than {} directories deep; does it ever end?",
                                  shown(place.path), Descent::kMostDepth));
    }
    co_return exit;
  }
  using Command::failed;
  Exit failed(const std::string& path, const Error& why) const {
    return failed(fmt::format("'{}': {}", path, explained(why)));
  }
  // In reverse: the next one is taken from the end. False: there are some too deep for it.
  bool add_directories(const Line& above, bool top, const std::vector<Line>& lines,
                       std::vector<Line>& left) const {
    const bool listed = above.attributes->type == nfs::client::FileType::Directory;
    if (!recursive_ || itself_ || !listed) return true;
    bool all = true;
    for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
      const bool directory =
          line->attributes && line->attributes->type == nfs::client::FileType::Directory;
      const bool too_deep = directory && above.depth >= Descent::kMostDepth;
      all = all && !too_deep;
      if (!directory || too_deep) continue;
      left.push_back(*line);
      left.back().below = top ? line->name : above.below + "/" + line->name;
      left.back().depth = above.depth + 1;
    }
    return all;
  }

  Task<Outcome<Node>> named(Remote& remote) {
    const bool link_itself = (long_ || itself_) && !remote.url().path.ends_with('/');
    const Links links = link_itself ? Links::FollowAllButLast : Links::Follow;
    const Outcome<Node> node = co_await remote.named(links);
    const bool leads_nowhere = !node && (node.error().is(nfs::client::Status::NoEntry) ||
                                         node.error().kind == Error::Kind::Links);
    if (!leads_nowhere) co_return node;
    Outcome<Node> link = co_await remote.named(Links::FollowAllButLast);
    if (link && link->attributes.type == nfs::client::FileType::Symlink) co_return link;
    co_return node;
  }

  Task<Outcome<std::vector<Line>>> lines_of(Remote& remote, Line directory) {
    std::vector<Line> lines;
    if (directory.attributes->type != nfs::client::FileType::Directory || itself_) {
      lines.push_back(std::move(directory));
      co_return lines;
    }
    const bool detailed = long_ || json_ || recursive_ || by_time_ || by_size_;
    Listing listing = remote.files().list(
        *directory.handle, detailed ? Listing::Detail::Attributes : Listing::Detail::Names,
        Listing::kMostKept);
    for (;;) {
      Outcome<std::vector<Entry>> batch = co_await listing.next();
      if (!batch) co_return Failure{batch.error()};
      if (batch->empty()) break;
      for (Entry& entry : *batch) {
        if (!all_ && entry.name.starts_with('.')) continue;
        Outcome<Ok> known{Ok{}};
        if (detailed && !(entry.attributes && entry.handle))
          known = co_await look(remote, *directory.handle, entry);
        const std::optional<Error> trouble = known ? std::nullopt : entry_trouble(known.error());
        if (!known && !trouble) co_return Failure{known.error()};
        lines.push_back({std::move(entry.name), entry.attributes, entry.handle});
        lines.back().trouble = trouble;
      }
    }
    sort(lines);
    co_return lines;
  }

  void sort(std::vector<Line>& lines) const {
    const auto before = [this](const Line& a, const Line& b) {
      const Attributes ours = a.attributes.value_or(Attributes{});
      const Attributes theirs = b.attributes.value_or(Attributes{});
      if (by_size_ && ours.size != theirs.size) return ours.size > theirs.size;
      if (by_time_ && ours.modified != theirs.modified) return ours.modified > theirs.modified;
      return a.name < b.name;
    };
    std::sort(lines.begin(), lines.end(), before);
    if (reverse_) std::reverse(lines.begin(), lines.end());
  }

  // A server may omit attributes in READDIRPLUS; an entry that was removed meanwhile is listed
  // without them.
  static Task<Outcome<Ok>> look(Remote& remote, nfs::client::Handle directory, Entry& entry) {
    const Outcome<Node> found = co_await remote.files().lookup(directory, entry.name);
    if (!found && found.error().is(nfs::client::Status::NoEntry)) co_return Ok{};
    if (!found) co_return Failure{found.error()};
    entry.attributes = found->attributes;
    entry.handle = found->handle;
    co_return Ok{};
  }

  static Task<void> read_targets(Remote& remote, std::vector<Line>& lines) {
    TaskGroup links;
    co_await joined(links, begin_targets(remote, lines, links));
  }
  static Task<Ok> begin_targets(Remote& remote, std::vector<Line>& lines, TaskGroup& links) {
    for (Line& line : lines) {
      if (!line.handle || !line.attributes ||
          line.attributes->type != nfs::client::FileType::Symlink)
        continue;
      co_await links.at_most(kLinksInFlight - 1);
      links.add(read_target(remote, line));
    }
    co_return Ok{};
  }
  // A link that was removed meanwhile stays without a target.
  static Task<void> read_target(Remote& remote, Line& line) {
    Outcome<std::string> target =
        co_await remote.files().readlink(*line.handle, line.attributes->size);
    if (target) line.target = *std::move(target);
  }

  void print(const Line& line, const std::string& url, Json& array) const {
    if (json_) {
      Json object;
      if (line.attributes)
        object = to_json(line.name, *line.attributes);
      else
        object.set_bytes("name", line.name);
      object.set("url", url);
      if (!line.target.empty()) object.set_bytes("target", line.target);
      array.add(std::move(object));
    } else if (long_ && line.attributes) {
      const Attributes& a = *line.attributes;
      const std::string size = human_ ? short_size(a.size) : std::to_string(a.size);
      put("{} {:>3} {:>6} {:>6} {:>12} {} {}{}\n", mode_text(a), a.links, a.uid, a.gid, size,
          time_text(a.modified), shown(line.name),
          line.target.empty() ? "" : " -> " + shown(line.target));
    } else if (long_) {
      put("?????????? {0:>3} {0:>6} {0:>6} {0:>12} {0:>19} {1}\n", '?', shown(line.name));
    } else {
      put("{}\n", shown(line.name));
    }
  }

  RemoteOptions remote_;
  std::vector<std::string> urls_;
  bool long_ = false, human_ = false, all_ = false, itself_ = false, json_ = false;
  bool recursive_ = false, by_time_ = false, by_size_ = false, reverse_ = false, one_ = false;
};

}  // namespace

std::unique_ptr<Command> make_ls() {
  return std::make_unique<Ls>();
}

}  // namespace stag::cli
