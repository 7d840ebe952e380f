#include "cli/commands.h"
#include "cli/commands/tree_change.h"
#include "cli/support/mode.h"

namespace stag::cli {
namespace {

using nfs::client::SetAttributes;

class Chmod final : public TreeChange {
 public:
  About about() const override {
    return {"chmod", "change modes",
            "  stag chmod u+x,go-w nfs://server/data/run.sh\n"
            "  stag chmod -R go+rX nfs://server/data/public\n"};
  }
  void declare(Arguments& arguments) override {
    arguments.positional(
        "MODE", text_,
        "octal, or like u+x,go=r or g=u; +w is within the umask; -w needs '--' before it");
    declare_recursive(arguments);
    declare_urls(arguments, "file or directory");
  }
  Exit run() override {
    Result<ModeChange, std::string> change = ModeChange::parse(text_, current_umask());
    if (!change) return misused(change.error());
    change_ = *std::move(change);
    return RemoteCommand::run();
  }

 private:
  std::optional<SetAttributes> change_of(const TreeEntry& entry) const override {
    const nfs::client::Attributes& known = entry.node.attributes;
    if (known.type == nfs::client::FileType::Symlink) return std::nullopt;
    SetAttributes attributes;
    attributes.mode = change_.apply(known.mode & 07777, entry.is_directory());
    return attributes;
  }

  std::string text_;
  ModeChange change_;
};

}  // namespace

std::unique_ptr<Command> make_chmod() {
  return std::make_unique<Chmod>();
}

}  // namespace stag::cli
