#include <fmt/format.h>

#include <chrono>
#include <set>
#include <vector>

#include "cli/commands.h"
#include "cli/commands/remote_command.h"
#include "cli/support/format.h"
#include "cli/support/json.h"
#include "cli/support/output.h"

namespace stag::cli {
namespace {

using nfs::client::Attributes;
using nfs::client::Links;
using nfs::client::Node;
using nfs::client::Url;

// For an access control list, without which everything else is shown all the same.
constexpr auto kListPatience = std::chrono::seconds(5);

class Stat final : public RemoteCommand {
 public:
  About about() const override {
    return {
        "stat", "show everything about files", "  stag stat nfs://server/data/report.txt\n",
        "JSON and names on terminals are as 'stag ls --help' says; 'target' is that of a link.\n"};
  }
  void declare(Arguments& arguments) override {
    arguments.flag("-L,--dereference", follow_, "what a symbolic link leads to, not the link");
    arguments.flag("--json", json_, "an array of objects");
    declare_urls(arguments, "file or directory");
  }

 private:
  Task<Outcome<Ok>> one(Run& run, std::string url) override {
    url_ = url;
    return RemoteCommand::one(run, std::move(url));
  }
  Task<Outcome<Ok>> act(Run& run, Remote& remote) override {
    const Outcome<Node> node = co_await remote.named(links());
    if (!node) co_return Failure{node.error()};
    std::string target;
    if (node->attributes.type == nfs::client::FileType::Symlink) {
      const Outcome<std::string> text =
          co_await remote.files().readlink(node->handle, node->attributes.size);
      if (!text) co_return Failure{text.error()};
      target = *text;
    }
    const std::string name = remote.path().empty() ? "." : remote.path();
    const std::vector<std::string> acl = co_await entries_beyond_mode(run, remote, *node);
    if (json_)
      add(remote, name, node->attributes, target, acl);
    else
      print(name, node->attributes, target, acl);
    co_return Ok{};
  }
  // Access control lists, if they say more than the mode; a server need not support them.
  Task<std::vector<std::string>> entries_beyond_mode(Run& run, Remote& remote, Node node) {
    std::vector<std::string> entries;
    if (node.attributes.type == nfs::client::FileType::Symlink) co_return entries;
    if (remote.url().version == 4) co_return co_await entries_by_version_3(run, remote, node);
    const Outcome<nfs::client::Acls> acls = co_await remote.files().acls(node.handle);
    if (!acls && !nfs::client::means_no_acls(acls.error())) complain(acls.error().sentence);
    co_return acls ? entries_of(*acls) : std::move(entries);
  }
  // Version 4 has no lists of POSIX. What does not answer in time by version 3, or shows something
  // else there, leaves the list out.
  Task<std::vector<std::string>> entries_by_version_3(Run& run, Remote& remote, Node node) {
    std::vector<std::string> entries;
    const Outcome<Url> named = Url::parse(url_);
    const std::string server = to_string(remote.url().nfs_address());
    if (!named || named->version || silent_.contains(server)) co_return entries;
    CancelSource given_up;
    const CancelCallback interrupted(run.cancel, [&given_up] { given_up.cancel(); });
    const Timer patience = run.loop.after(kListPatience, [&given_up] { given_up.cancel(); });
    Run brief{run.loop, given_up};
    RemoteOptions options = RemoteCommand::remote();
    options.version_3_only = true;
    options.tells_choice = false;  // the first session has told it
    const Outcome<std::unique_ptr<Remote>> opened = co_await Remote::open(brief, url_, options);
    if (!opened && opened.error().kind == nfs::client::Error::Kind::Call) silent_.insert(server);
    if (!opened) co_return entries;
    const Outcome<Node> same = co_await (*opened)->named(links());
    if (same && same->attributes.file_id == node.attributes.file_id) {
      const Outcome<nfs::client::Acls> acls = co_await (*opened)->files().acls(same->handle);
      if (acls) entries = entries_of(*acls);
    }
    co_await (*opened)->close();
    co_return entries;
  }
  static std::vector<std::string> entries_of(const nfs::client::Acls& acls) {
    std::vector<std::string> entries;
    if (!acls.beyond_mode()) return entries;
    for (const auto& entry : acls.access) entries.push_back(nfs::client::to_string(entry));
    for (const auto& entry : acls.defaults)
      entries.push_back("default:" + nfs::client::to_string(entry));
    return entries;
  }
  Links links() const { return follow_ ? Links::Follow : Links::FollowAllButLast; }
  void finish() override {
    if (json_) put("{}\n", array_.text());
  }

  void add(Remote& remote, const std::string& name, const Attributes& attributes,
           const std::string& target, const std::vector<std::string>& acl) {
    Json object = to_json(name, attributes);
    object.set("url", to_string(remote.url()));
    if (!target.empty()) object.set_bytes("target", target);
    if (!acl.empty()) object.set("acl", fmt::format("{}", fmt::join(acl, ",")));
    array_.add(std::move(object));
  }
  static void print(const std::string& name, const Attributes& a, const std::string& target,
                    const std::vector<std::string>& acl) {
    const std::string arrow = target.empty() ? "" : " -> " + shown(target);
    put("   name  {}{}\n", shown(name), arrow);
    put("   type  {}\n", type_name(a.type));
    put("   size  {} ({} on the server's disk)\n", a.size, human_size(static_cast<double>(a.used)));
    put("   mode  {:04o} {}\n", a.mode, mode_text(a));
    if (!acl.empty()) put("    acl  {}\n", fmt::join(acl, "\n         "));
    put("  owner  uid {}, gid {}\n", a.uid, a.gid);
    put("  links  {}\n", a.links);
    put("     id  {} in file system {:x}\n", a.file_id, a.file_system_id);
    put(" access  {}\n modify  {}\n change  {}\n", time_text(a.accessed), time_text(a.modified),
        time_text(a.changed));
  }

  bool follow_ = false, json_ = false;
  std::string url_;               // the present one, as it was given
  std::set<std::string> silent_;  // servers that have not answered by version 3
  Json array_ = Json::array();
};

}  // namespace

std::unique_ptr<Command> make_stat() {
  return std::make_unique<Stat>();
}

}  // namespace stag::cli
