#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/commands/remote_command.h"
#include "cli/support/format.h"
#include "cli/support/json.h"
#include "cli/support/output.h"

namespace stag::cli {
namespace {

using nfs::client::FileSystemUsage;
using nfs::client::Node;

class Df final : public RemoteCommand {
 public:
  About about() const override {
    return {"df", "show how much room there is", "  stag df nfs://server/data\n",
            "JSON: a number above 2^53 is also there as a string, in 'size_exact' and so on.\n"};
  }
  void declare(Arguments& arguments) override {
    arguments.human_readable(human_, "sizes like 4.0 GiB, which they are anyway without --json");
    arguments.flag("--json", json_, "an array of objects, sizes in bytes");
    declare_urls(arguments, "export, or anything in it");
  }

 private:
  Task<Outcome<Ok>> act(Run&, Remote& remote) override {
    const Outcome<Node> node = co_await remote.files().walk(remote.path());
    if (!node) co_return Failure{node.error()};
    const Outcome<FileSystemUsage> room = co_await remote.files().usage(node->handle);
    if (!room) co_return Failure{room.error()};
    if (json_)
      array_.add(object(remote, *room));
    else
      print(remote, *room);
    co_return Ok{};
  }
  void finish() override {
    if (json_) put("{}\n", array_.text());
  }

  static Json object(Remote& remote, const FileSystemUsage& room) {
    Json json;
    json.set("url", to_string(remote.url()))
        .set_quantity("size", room.total_bytes)
        .set_quantity("used", room.total_bytes - room.free_bytes)
        .set_quantity("available", room.available_bytes)
        .set_quantity("files", room.total_files)
        .set_quantity("files_available", room.available_files);
    return json;
  }
  void print(Remote& remote, const FileSystemUsage& room) {
    const std::uint64_t used = room.total_bytes - room.free_bytes;
    const double share = room.total_bytes == 0 ? 0
                                               : 100.0 * static_cast<double>(used) /
                                                     static_cast<double>(room.total_bytes);
    if (!headed_)
      put("{:>11} {:>11} {:>11} {:>5} {:>12}  where\n", "size", "used", "available", "use",
          "files left");
    headed_ = true;
    const auto size = [](std::uint64_t bytes) { return human_size(static_cast<double>(bytes)); };
    put("{:>11} {:>11} {:>11} {:>4.0f}% {:>12}  {}\n", size(room.total_bytes), size(used),
        size(room.available_bytes), share, room.available_files, to_string(remote.url()));
  }

  bool human_ = true, json_ = false, headed_ = false;
  Json array_ = Json::array();
};

}  // namespace

std::unique_ptr<Command> make_df() {
  return std::make_unique<Df>();
}

}  // namespace stag::cli
