#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/commands/pair_command.h"

namespace stag::cli {
namespace {

using nfs::client::Error;
using nfs::client::Links;
using nfs::client::Node;

class Ln final : public PairCommand {
 public:
  About about() const override {
    return {"ln", "make hard and symbolic links",
            "  stag ln -s ../reports/final nfs://server/data/latest\n"
            "  stag ln nfs://server/data/a nfs://server/data/b\n"};
  }
  void declare(Arguments& arguments) override {
    arguments.flag("-s,--symbolic", symbolic_, "a symbolic link; TARGET is its text, as it is");
    remote_.declare(arguments);
    arguments.positional("TARGET", target_, "URL of the file to link to; with -s any text");
    arguments.positional("URL", link_, "the link to make, or a directory to make it in");
  }
  Exit run() override {
    if (symbolic_ && target_.empty())
      return misused("the text of a symbolic link cannot be empty; name what it leads to");
    return on_loop([this](Run& run) { return work(run); });
  }

 private:
  Task<Exit> work(Run& run) {
    Outcome<std::unique_ptr<Remote>> remote = co_await Remote::open(run, link_, remote_);
    if (!remote) co_return failed(remote.error());
    Outcome<Ok> linked{Ok{}};
    if (symbolic_)
      linked = co_await link_symbolically(**remote);
    else
      linked = co_await link_file(**remote);
    co_await (*remote)->close();
    if (!linked) co_return failed(linked.error());
    co_return Exit::Done;
  }

  Task<Outcome<Ok>> link_symbolically(Remote& remote) {
    const Outcome<Slot> at = co_await slot_at_or_in(remote, remote.slashed_path(), target_, false);
    if (!at) co_return Failure{at.error()};
    const Outcome<Node> made =
        co_await remote.files().symlink(at->directory.handle, at->name, target_);
    if (!made) co_return Failure{made.error()};
    co_return Ok{};
  }

  Task<Outcome<Ok>> link_file(Remote& remote) {
    const Outcome<std::string> path = path_within(remote, target_);
    if (!path) co_return Failure{path.error()};
    const Outcome<Node> file = co_await remote.walk(*path, Links::FollowAllButLast);
    if (!file) co_return Failure{file.error()};
    if (file->attributes.type == nfs::client::FileType::Directory)
      co_return Failure{Error::of_local(fmt::format(
          "'{}' is a directory, and has one name; 'stag ln -s' makes a symbolic link", target_))};
    const Outcome<Slot> at = co_await slot_at_or_in(remote, remote.slashed_path(), *path, false);
    if (!at) co_return Failure{at.error()};
    co_return co_await remote.files().link(file->handle, at->directory.handle, at->name);
  }

  bool symbolic_ = false;
  RemoteOptions remote_;
  std::string target_, link_;
};

}  // namespace

std::unique_ptr<Command> make_ln() {
  return std::make_unique<Ln>();
}

}  // namespace stag::cli
