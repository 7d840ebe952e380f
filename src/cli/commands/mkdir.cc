#include <fmt/format.h>

#include <optional>
#include <vector>

#include "cli/commands.h"
#include "cli/commands/remote_command.h"
#include "cli/support/mode.h"

namespace stag::cli {
namespace {

using nfs::client::Error;
using nfs::client::Handle;
using nfs::client::Node;

constexpr std::uint32_t kMode = 0777;
constexpr std::uint32_t kOwnersWay = 0300;

class Mkdir final : public RemoteCommand {
 public:
  About about() const override {
    return {"mkdir", "make directories", "  stag mkdir -p nfs://server/data/2024/reports\n"};
  }
  void declare(Arguments& arguments) override {
    arguments.flag("-p,--parents", parents_,
                   "the directories on the way, too; one that exists is no error");
    arguments.text("-m,--mode", mode_text_, "MODE",
                   "octal or like u=rwx,go=rx, of the last one [777 within the umask]");
    declare_urls(arguments, "directory to make");
  }
  Exit run() override {
    mode_ = kMode & ~current_umask();
    // As mkdir(1) does: what is on the way can be gone through, whatever is asked for below it.
    mode_on_the_way_ = mode_ | kOwnersWay;
    if (!mode_text_) return RemoteCommand::run();
    const Result<ModeChange, std::string> mode = ModeChange::parse(*mode_text_, current_umask());
    if (!mode) return misused(mode.error());
    mode_ = mode->apply(kMode, true);
    return RemoteCommand::run();
  }

 private:
  Task<Outcome<Ok>> act(Run&, Remote& remote) override {
    if (parents_) co_return co_await make_all(remote);
    const Place place = place_of(remote.path());
    const Outcome<Handle> parent = co_await parent_of(remote, place);
    if (!parent) co_return Failure{parent.error()};
    const Outcome<Node> made = co_await remote.files().mkdir(*parent, place.name, {.mode = mode_});
    if (!made) co_return Failure{made.error()};
    co_return Ok{};
  }

  Task<Outcome<Ok>> make_all(Remote& remote) {
    const std::string& path = remote.path();
    std::vector<std::string> names;
    for (std::size_t begin = 0; begin < path.size();) {
      const std::size_t end = std::min(path.find('/', begin), path.size());
      const std::string name = path.substr(begin, end - begin);
      begin = end + 1;
      if (!name.empty() && name != ".") names.push_back(name);
    }
    Handle at = remote.files().root();
    for (const std::string& name : names) {
      const bool last = &name == &names.back();
      const Outcome<Handle> next = co_await step(remote, at, name, last ? mode_ : mode_on_the_way_);
      if (!next) co_return Failure{next.error()};
      at = *next;
    }
    co_return Ok{};
  }

  // Yields the existing directory or makes a new one.
  Task<Outcome<Handle>> step(Remote& remote, Handle at, std::string name, std::uint32_t mode) {
    Outcome<Node> node = co_await remote.files().walk_from(at, name);
    if (!node && node.error().is(nfs::client::Status::NoEntry)) {
      node = co_await remote.files().mkdir(at, name, {.mode = mode});
      // Another client has made it meanwhile.
      if (!node && node.error().is(nfs::client::Status::Exists))
        node = co_await remote.files().walk_from(at, name);
    }
    if (!node) co_return Failure{node.error()};
    if (node->attributes.type != nfs::client::FileType::Directory)
      co_return Failure{Error::of_local(fmt::format("'{}' is there and is no directory", name))};
    co_return node->handle;
  }

  bool parents_ = false;
  std::optional<std::string> mode_text_;
  std::uint32_t mode_ = 0, mode_on_the_way_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_mkdir() {
  return std::make_unique<Mkdir>();
}

}  // namespace stag::cli
