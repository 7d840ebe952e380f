#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/commands/remote_command.h"
#include "cli/support/format.h"
#include "cli/support/output.h"

namespace stag::cli {
namespace {

using nfs::client::Error;
using nfs::client::Node;

class Readlink final : public RemoteCommand {
 public:
  About about() const override {
    return {"readlink", "print where symbolic links lead",
            "  stag readlink nfs://server/data/current\n"};
  }
  void declare(Arguments& arguments) override {
    arguments.flag("-n,--no-newline", no_newline_, "no newline after it; of one URL");
    arguments.flag("-z,--zero", zeros_, "a zero byte after each, not a newline");
    declare_urls(arguments, "symbolic link");
  }

 private:
  Task<Outcome<Ok>> act(Run&, Remote& remote) override {
    nfs::client::FileSystem& files = remote.files();
    const Outcome<Node> node = co_await remote.named(nfs::client::Links::FollowAllButLast);
    if (!node) co_return Failure{node.error()};
    if (node->attributes.type != nfs::client::FileType::Symlink)
      // Of several, its URL is said before.
      co_return Failure{Error::of_local(
          urls().size() > 1 ? "it is no symbolic link"
                            : fmt::format("'{}' is no symbolic link", to_string(remote.url())))};
    const Outcome<std::string> target =
        co_await files.readlink(node->handle, node->attributes.size);
    if (!target) co_return Failure{target.error()};
    write_out(zeros_ ? *target : shown(*target));
    if (zeros_)
      write_out(std::string_view("\0", 1));
    else if (!no_newline_ || urls().size() > 1)
      write_out("\n");
    co_return Ok{};
  }

  bool no_newline_ = false, zeros_ = false;
};

}  // namespace

std::unique_ptr<Command> make_readlink() {
  return std::make_unique<Readlink>();
}

}  // namespace stag::cli
