#include <fmt/format.h>

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
    remote().version_3_first = true;
  }

 private:
  Task<Outcome<Ok>> act(Run&, Remote& remote) override {
    const Links links = follow_ ? Links::Follow : Links::FollowAllButLast;
    const Outcome<Node> node = co_await remote.named(links);
    if (!node) co_return Failure{node.error()};
    std::string target;
    if (node->attributes.type == nfs::client::FileType::Symlink) {
      const Outcome<std::string> text =
          co_await remote.files().readlink(node->handle, node->attributes.size);
      if (!text) co_return Failure{text.error()};
      target = *text;
    }
    const std::string name = remote.path().empty() ? "." : remote.path();
    const std::vector<std::string> acl = co_await entries_beyond_mode(remote, *node);
    if (json_)
      add(remote, name, node->attributes, target, acl);
    else
      print(name, node->attributes, target, acl);
    co_return Ok{};
  }
  // Access control lists, if they say more than the mode; a server need not support them.
  Task<std::vector<std::string>> entries_beyond_mode(Remote& remote, Node node) {
    std::vector<std::string> entries;
    if (node.attributes.type == nfs::client::FileType::Symlink) co_return entries;
    const Outcome<nfs::client::Acls> acls = co_await remote.files().acls(node.handle);
    if (!acls && !nfs::client::means_no_acls(acls.error())) complain(acls.error().sentence);
    if (!acls || !acls->beyond_mode()) co_return entries;
    for (const auto& entry : acls->access) entries.push_back(nfs::client::to_string(entry));
    for (const auto& entry : acls->defaults)
      entries.push_back("default:" + nfs::client::to_string(entry));
    co_return entries;
  }
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
  Json array_ = Json::array();
};

}  // namespace

std::unique_ptr<Command> make_stat() {
  return std::make_unique<Stat>();
}

}  // namespace stag::cli
