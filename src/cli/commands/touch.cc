#include "cli/commands.h"
#include "cli/commands/remote_command.h"

namespace stag::cli {
namespace {

using nfs::client::CreateMode;
using nfs::client::Handle;
using nfs::client::Node;
using nfs::client::SetAttributes;
using nfs::client::SetTime;

constexpr std::uint32_t kMode = 0644;  // of a new file

class Touch final : public RemoteCommand {
 public:
  About about() const override {
    return {"touch", "set times to now, or make empty files",
            "  stag touch nfs://server/data/ready\n"};
  }
  void declare(Arguments& arguments) override {
    arguments.flag("-c,--no-create", existing_, "make no new files");
    declare_urls(arguments, "file or directory");
  }

 private:
  Task<Outcome<Ok>> act(Run&, Remote& remote) override {
    Outcome<Node> node = co_await remote.files().walk(remote.path());
    if (!node && node.error().is(nfs::client::Status::NoEntry)) {
      if (existing_) co_return Ok{};
      node = co_await make(remote);
    }
    if (!node) co_return Failure{node.error()};
    SetAttributes times;
    times.accessed = SetTime::now();
    times.modified = SetTime::now();
    co_return co_await remote.files().setattr(node->handle, times);
  }

  static Task<Outcome<Node>> make(Remote& remote) {
    const Place place = place_of(remote.path());
    const Outcome<Handle> parent = co_await parent_of(remote, place);
    if (!parent) co_return Failure{parent.error()};
    SetAttributes attributes;
    attributes.mode = kMode;
    co_return co_await remote.files().create(*parent, place.name, attributes,
                                             CreateMode::Unchecked);
  }

  bool existing_ = false;
};

}  // namespace

std::unique_ptr<Command> make_touch() {
  return std::make_unique<Touch>();
}

}  // namespace stag::cli
