#include <fmt/format.h>
#include <unistd.h>

#include <csignal>

#include "cli/commands.h"
#include "cli/commands/remote_command.h"
#include "cli/support/standard_input.h"
#include "cli/support/standard_output.h"

namespace stag::cli {
namespace {

using nfs::client::DataSink;
using nfs::client::Error;
using nfs::client::Node;

class OutputSink final : public DataSink {
 public:
  // Sets `unread` when nobody reads it any more.
  OutputSink(Run& run, bool& unread)
      : output_(run, STDOUT_FILENO, "standard output"), unread_(unread) {}
  Task<Outcome<Ok>> write(std::uint64_t, Bytes data) override {
    return output_.write(data, unread_);
  }

 private:
  StandardOutput output_;
  bool& unread_;
};

class Cat final : public RemoteCommand {
 public:
  About about() const override {
    return {"cat", "write files to standard output", "  stag cat nfs://server/data/log | less\n"};
  }
  void declare(Arguments& arguments) override {
    declare_urls(arguments, "file; '-' is standard input");
  }
  Exit run() override {
    const Exit exit = RemoteCommand::run();
    return unread_ ? exit_by_signal(SIGPIPE) : exit;
  }

 private:
  Task<Outcome<Ok>> one(Run& run, std::string url) override {
    if (url != "-") return RemoteCommand::one(run, std::move(url));
    return pass_through(run);
  }
  Task<Outcome<Ok>> pass_through(Run& run) {
    OutputSink output(run, unread_);
    std::vector<std::byte> buffer(std::size_t{1} << 16);
    for (;;) {
      const Outcome<std::size_t> got = co_await read_standard_input(run, buffer);
      if (!got) co_return Failure{got.error()};
      if (*got == 0) co_return Ok{};
      const Outcome<Ok> written = co_await output.write(0, Bytes(buffer).first(*got));
      if (!written) co_return written;
    }
  }
  Task<Outcome<Ok>> act(Run& run, Remote& remote) override {
    const Outcome<Node> node = co_await remote.named();
    if (!node) co_return Failure{node.error()};
    if (node->attributes.type == nfs::client::FileType::Directory)
      co_return Failure{Error::of_local(fmt::format(
          "'{}' is a directory; see what is in it with 'stag ls'", to_string(remote.url())))};
    OutputSink output(run, unread_);
    const Outcome<std::uint64_t> read =
        co_await remote.files().read_file(node->handle, output, node->attributes.size);
    if (!read) co_return Failure{read.error()};
    co_return Ok{};
  }

  bool unread_ = false;
};

}  // namespace

std::unique_ptr<Command> make_cat() {
  return std::make_unique<Cat>();
}

}  // namespace stag::cli
