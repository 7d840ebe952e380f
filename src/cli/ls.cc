#include <fmt/format.h>

#include <algorithm>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/format.h"
#include "cli/json.h"
#include "cli/output.h"
#include "cli/remote.h"

namespace stag::cli {
namespace {

using nfs::client::Attributes;
using nfs::client::Entry;
using nfs::client::Listing;
using nfs::client::Node;

class Ls final : public Command {
 public:
  About about() const override {
    return {"ls", "list directories", "  stag ls -l nfs://server/data/reports\n"};
  }
  void declare(Arguments& arguments) override {
    arguments.flag("-l,--long", long_, "type and mode, links, owner, size and time of each");
    arguments.flag("-a,--all", all_, "names that begin with a dot, too");
    arguments.flag("-d,--directory", itself_, "the directory itself, not what is in it");
    arguments.flag("--json", json_, "an array of objects");
    remote_.declare(arguments);
    arguments.positionals("URL", urls_, 1, "directory or file");
  }
  Exit run() override {
    return on_loop([this](Run& run) { return work(run); });
  }

 private:
  struct Line {
    std::string name;
    std::optional<Attributes> attributes;
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
    const Outcome<std::vector<Line>> lines = co_await lines_of(**remote);
    co_await (*remote)->close();
    if (!lines) co_return failed(lines.error());
    if (urls_.size() > 1 && !json_) put("{}:\n", shown(url));
    for (const Line& line : *lines) print(line, array);
    co_return Exit::Done;
  }

  Task<Outcome<std::vector<Line>>> lines_of(Remote& remote) {
    std::vector<Line> lines;
    const Outcome<Node> node = co_await remote.files().walk(remote.path());
    if (!node) co_return Failure{node.error()};
    if (node->attributes.type != nfs::v3::NF3DIR || itself_) {
      const std::string& path = remote.path();
      lines.push_back({path.empty() ? "." : path, node->attributes});
      co_return lines;
    }
    const bool detailed = long_ || json_;
    Listing listing = remote.files().list(
        node->handle, detailed ? Listing::Detail::Attributes : Listing::Detail::Names);
    for (;;) {
      Outcome<std::vector<Entry>> batch = co_await listing.next();
      if (!batch) co_return Failure{batch.error()};
      if (batch->empty()) break;
      for (Entry& entry : *batch) {
        if (!all_ && entry.name.starts_with('.')) continue;
        if (detailed && !entry.attributes) co_await look(remote, node->handle, entry);
        lines.push_back({std::move(entry.name), entry.attributes});
      }
    }
    std::sort(lines.begin(), lines.end(),
              [](const Line& a, const Line& b) { return a.name < b.name; });
    co_return lines;
  }

  // A server may leave attributes out of its list; one that has gone meanwhile stays without.
  static Task<void> look(Remote& remote, nfs::client::Handle directory, Entry& entry) {
    const Outcome<Node> found = co_await remote.files().lookup(directory, entry.name);
    if (found) entry.attributes = found->attributes;
  }

  void print(const Line& line, Json& array) const {
    if (json_) {
      array.add(to_json(line.name, line.attributes.value_or(Attributes{})));
    } else if (long_ && line.attributes) {
      const Attributes& a = *line.attributes;
      put("{} {:>3} {:>6} {:>6} {:>12} {} {}\n", mode_text(a), a.nlink, a.uid, a.gid, a.size,
          time_text(a.mtime), shown(line.name));
    } else {
      put("{}\n", shown(line.name));
    }
  }

  RemoteOptions remote_;
  std::vector<std::string> urls_;
  bool long_ = false, all_ = false, itself_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_ls() {
  return std::make_unique<Ls>();
}

}  // namespace stag::cli
