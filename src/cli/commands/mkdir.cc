#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/commands/remote_command.h"
#include "cli/support/mode.h"

namespace stag::cli {
namespace {

using nfs::client::Error;
using nfs::client::Handle;
using nfs::client::Node;

class Mkdir final : public RemoteCommand {
 public:
  About about() const override {
    return {"mkdir", "make directories", "  stag mkdir -p nfs://server/data/2024/reports\n"};
  }
  void declare(Arguments& arguments) override {
    arguments.flag("-p,--parents", parents_,
                   "the directories on the way, too; one that exists is no error");
    arguments.text("-m,--mode", mode_text_, "MODE", "octal or like u=rwx,go=rx [755]");
    declare_urls(arguments, "directory to make");
  }
  Exit run() override {
    const Result<ModeChange, std::string> mode = ModeChange::parse(mode_text_);
    if (!mode) return misused(mode.error());
    mode_ = mode->apply(0, true);
    return RemoteCommand::run();
  }

 private:
  Task<Outcome<Ok>> act(Run&, Remote& remote) override {
    if (parents_) co_return co_await make_all(remote);
    const Place place = place_of(remote.path());
    const Outcome<Handle> parent = co_await parent_of(remote, place);
    if (!parent) co_return Failure{parent.error()};
    const Outcome<Node> made = co_await remote.files().mkdir(*parent, place.name, attributes());
    if (!made) co_return Failure{made.error()};
    co_return Ok{};
  }

  Task<Outcome<Ok>> make_all(Remote& remote) {
    const std::string& path = remote.path();
    Handle at = remote.files().root();
    for (std::size_t begin = 0; begin < path.size();) {
      const std::size_t end = std::min(path.find('/', begin), path.size());
      const std::string name = path.substr(begin, end - begin);
      begin = end + 1;
      if (name.empty() || name == ".") continue;
      const Outcome<Handle> next = co_await step(remote, at, name);
      if (!next) co_return Failure{next.error()};
      at = *next;
    }
    co_return Ok{};
  }

  // Yields the existing directory or makes a new one.
  Task<Outcome<Handle>> step(Remote& remote, Handle at, std::string name) {
    Outcome<Node> node = co_await remote.files().walk_from(at, name);
    if (!node && node.error().is(nfs::client::Status::NoEntry)) {
      node = co_await remote.files().mkdir(at, name, attributes());
      // Another client has made it meanwhile.
      if (!node && node.error().is(nfs::client::Status::Exists))
        node = co_await remote.files().walk_from(at, name);
    }
    if (!node) co_return Failure{node.error()};
    if (node->attributes.type != nfs::client::FileType::Directory)
      co_return Failure{Error::of_local(fmt::format("'{}' is there and is no directory", name))};
    co_return node->handle;
  }

  nfs::client::SetAttributes attributes() const {
    nfs::client::SetAttributes attributes;
    attributes.mode = mode_;
    return attributes;
  }

  bool parents_ = false;
  std::string mode_text_ = "755";
  std::uint32_t mode_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_mkdir() {
  return std::make_unique<Mkdir>();
}

}  // namespace stag::cli
