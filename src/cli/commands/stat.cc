#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/commands/remote_command.h"
#include "cli/support/format.h"
#include "cli/support/json.h"
#include "cli/support/output.h"

namespace stag::cli {
namespace {

using nfs::client::Attributes;
using nfs::client::Error;
using nfs::client::Links;
using nfs::client::Nfs4Acl;
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
  }

 private:
  // What getfacl(1) or, by version 4, nfs4_getfacl(1) would show.
  struct Listed {
    bool native = false;  // in the form of version 4
    std::vector<std::string> entries{};
  };
  Task<Outcome<Ok>> act(Run&, Remote& remote) override {
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
    const Listed list = co_await list_of(remote, *node);
    if (json_)
      add(remote, name, node->attributes, target, list);
    else
      print(name, node->attributes, target, list);
    co_return Ok{};
  }
  // An access control list, if it says more than the mode; a server need not have any.
  Task<Listed> list_of(Remote& remote, Node node) {
    Listed list;
    if (node.attributes.type == nfs::client::FileType::Symlink) co_return list;
    const Outcome<nfs::client::Acls> acls = co_await remote.files().acls(node.handle);
    if (acls) co_return posix_list(*acls);
    Error why = acls.error();
    // Version 4 may have one that POSIX cannot say.
    if (nfs::client::means_no_acls(why) && remote.url().version == 4) {
      const Outcome<Nfs4Acl> native = co_await remote.files().nfs4_acl(node.handle);
      if (native) co_return nfs4_list(*native);
      why = native.error();
    }
    if (!nfs::client::means_no_acls(why)) complain(why.sentence);
    co_return list;
  }
  static Listed posix_list(const nfs::client::Acls& acls) {
    Listed list;
    if (!acls.beyond_mode()) return list;
    for (const auto& entry : acls.access) list.entries.push_back(nfs::client::to_string(entry));
    for (const auto& entry : acls.defaults)
      list.entries.push_back("default:" + nfs::client::to_string(entry));
    return list;
  }
  static Listed nfs4_list(const Nfs4Acl& acl) {
    Listed list{.native = true, .entries = {}};
    for (const auto& entry : acl) list.entries.push_back(nfs::client::to_string(entry));
    return list;
  }
  Links links() const { return follow_ ? Links::Follow : Links::FollowAllButLast; }
  void finish() override {
    if (json_) put("{}\n", array_.text());
  }

  void add(Remote& remote, const std::string& name, const Attributes& attributes,
           const std::string& target, const Listed& list) {
    Json object = to_json(name, attributes);
    object.set("url", to_string(remote.url()));
    if (!target.empty()) object.set_bytes("target", target);
    if (list.native) {
      Json entries = Json::array();
      for (const std::string& entry : list.entries) entries.add(entry);
      object.set("nfs4_acl", std::move(entries));
    } else if (!list.entries.empty()) {
      object.set("acl", fmt::format("{}", fmt::join(list.entries, ",")));
    }
    array_.add(std::move(object));
  }
  static void print(const std::string& name, const Attributes& a, const std::string& target,
                    const Listed& list) {
    const std::string arrow = target.empty() ? "" : " -> " + shown(target);
    put("   name  {}{}\n", shown(name), arrow);
    put("   type  {}\n", type_name(a.type));
    put("   size  {} ({} on the server's disk)\n", a.size, human_size(static_cast<double>(a.used)));
    put("   mode  {:04o} {}\n", a.mode, mode_text(a));
    std::string_view label = "    acl";
    for (const std::string& entry : list.entries)
      put("{}  {}\n", std::exchange(label, "       "), shown(entry));
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
