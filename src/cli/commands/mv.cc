#include "cli/commands.h"
#include "cli/commands/pair_command.h"

namespace stag::cli {
namespace {

using nfs::client::Node;

class Mv final : public PairCommand {
 public:
  About about() const override {
    return {"mv", "rename, or move within an export",
            "  stag mv nfs://server/data/draft nfs://server/data/2024/final\n"};
  }
  void declare(Arguments& arguments) override {
    remote_.declare(arguments);
    arguments.positional("SRC", from_, "URL of what to move");
    arguments.positional("DST", to_, "URL of its new name, or of a directory to move it into");
  }
  Exit run() override {
    return on_loop([this](Run& run) { return work(run); });
  }

 private:
  Task<Exit> work(Run& run) {
    Outcome<std::unique_ptr<Remote>> remote = co_await Remote::open(run, from_, remote_);
    if (!remote) co_return failed(remote.error());
    const Outcome<Ok> moved = co_await move(**remote);
    co_await (*remote)->close();
    if (!moved) co_return failed(moved.error());
    co_return Exit::Done;
  }

  Task<Outcome<Ok>> move(Remote& remote) {
    const Outcome<std::string> path = path_within(remote, to_);
    if (!path) co_return Failure{path.error()};
    const Outcome<Slot> from = co_await slot_at(remote, remote.path());
    if (!from) co_return Failure{from.error()};
    const Outcome<Node> moved =
        co_await remote.entry(from->directory, place_of(remote.slashed_path()));
    if (!moved) co_return Failure{moved.error()};
    const bool directory = moved->attributes.type == nfs::client::FileType::Directory;
    const Outcome<Slot> to = co_await slot_at_or_in(remote, *path, remote.path(), directory);
    if (!to) co_return Failure{to.error()};
    co_return co_await remote.files().rename(from->directory, from->name, to->directory, to->name);
  }

  RemoteOptions remote_;
  std::string from_, to_;
};

}  // namespace

std::unique_ptr<Command> make_mv() {
  return std::make_unique<Mv>();
}

}  // namespace stag::cli
