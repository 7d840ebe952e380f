#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>

#include "cli/commands.h"
#include "cli/commands/tree_change.h"
#include "cli/support/user_id.h"

namespace stag::cli {
namespace {

using nfs::client::SetAttributes;

class Chown final : public TreeChange {
 public:
  About about() const override {
    return {"chown", "change owners and groups",
            "  stag chown -R anna:staff nfs://server/data/anna\n"
            "  stag chown :1000 nfs://server/data/shared\n",
            "Names are those of this machine; the server is told numbers. With -R a symbolic link\n"
            "that is named is changed itself, unless '/' is behind it.\n"};
  }
  void declare(Arguments& arguments) override {
    arguments.positional(
        "OWNER[:[GROUP]]", text_,
        "names or numbers; with ':' and nothing after it, the group that the owner "
        "logs in with; :GROUP changes the group only");
    declare_recursive(arguments);
    arguments.flag("--no-dereference", links_, "a symbolic link itself, not what it leads to");
    declare_urls(arguments, "file or directory");
  }
  Exit run() override {
    if (const std::optional<std::string> wrong = understand()) return misused(*wrong);
    const bool itself = links_ || recursive();
    follow_ = itself ? nfs::client::Links::FollowAllButLast : nfs::client::Links::Follow;
    return RemoteCommand::run();
  }

 private:
  // Asks the name service, which may block.
  std::optional<std::string> understand() {
    const std::size_t colon = text_.find(':');
    const std::string owner = text_.substr(0, colon);
    const passwd* const known = owner.empty() ? nullptr : ::getpwnam(owner.c_str());
    if (!owner.empty()) {
      uid_ = known != nullptr ? std::optional<std::uint32_t>(known->pw_uid) : parse_id(owner);
      if (!uid_) return fmt::format("there is no user '{}' on this machine", owner);
    }
    if (colon == std::string::npos) {
      if (owner.empty()) return "say whom: OWNER, OWNER:GROUP or :GROUP";
      return std::nullopt;
    }
    const std::string group = text_.substr(colon + 1);
    if (group.empty() && known != nullptr) gid_ = known->pw_gid;
    if (group.empty() && known == nullptr)
      return fmt::format("'{}': which group that user logs in with is not known here", text_);
    if (group.empty()) return std::nullopt;
    const ::group* const found = ::getgrnam(group.c_str());
    gid_ = found != nullptr ? std::optional<std::uint32_t>(found->gr_gid) : parse_id(group);
    if (!gid_) return fmt::format("there is no group '{}' on this machine", group);
    return std::nullopt;
  }

  std::optional<SetAttributes> change_of(const TreeEntry&) const override {
    SetAttributes attributes;
    attributes.uid = uid_;
    attributes.gid = gid_;
    return attributes;
  }

  std::string text_;
  std::optional<std::uint32_t> uid_, gid_;
  bool links_ = false;
};

}  // namespace

std::unique_ptr<Command> make_chown() {
  return std::make_unique<Chown>();
}

}  // namespace stag::cli
