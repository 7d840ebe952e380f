#include "cli/commands.h"
#include "cli/commands/remote_command.h"
#include "cli/support/mode.h"

namespace stag::cli {
namespace {

using nfs::client::Node;

class Chmod final : public RemoteCommand {
 public:
  About about() const override {
    return {"chmod", "change modes", "  stag chmod u+x,go-w nfs://server/data/run.sh\n"};
  }
  void declare(Arguments& arguments) override {
    arguments.positional("MODE", text_, "octal, or like u+x,go=r");
    declare_urls(arguments, "file or directory");
  }
  Exit run() override {
    Result<ModeChange, std::string> change = ModeChange::parse(text_);
    if (!change) return misused(change.error());
    change_ = *std::move(change);
    return RemoteCommand::run();
  }

 private:
  Task<Outcome<Ok>> act(Run&, Remote& remote) override {
    const Outcome<Node> node = co_await remote.files().walk(remote.path());
    if (!node) co_return Failure{node.error()};
    const bool directory = node->attributes.type == nfs::client::FileType::Directory;
    nfs::client::SetAttributes attributes;
    attributes.mode = change_.apply(node->attributes.mode & 07777, directory);
    co_return co_await remote.files().setattr(node->handle, attributes);
  }

  std::string text_;
  ModeChange change_;
};

}  // namespace

std::unique_ptr<Command> make_chmod() {
  return std::make_unique<Chmod>();
}

}  // namespace stag::cli
