#include <fmt/format.h>

#include <cmath>

#include "cli/commands.h"
#include "cli/commands/remote_command.h"
#include "cli/support/format.h"
#include "cli/support/json.h"
#include "cli/support/output.h"

namespace stag::cli {
namespace {

using nfs::client::FileSystemUsage;
using nfs::client::Node;

// As df(1) has it: of what users have and can have, rounded up. What root alone can have is no part
// of it.
std::string share_of(std::uint64_t used, std::uint64_t available) {
  const double all = static_cast<double>(used) + static_cast<double>(available);
  if (all == 0) return "-";
  return fmt::format("{:.0f}%", std::ceil(100 * static_cast<double>(used) / all));
}

class Df final : public RemoteCommand {
 public:
  About about() const override {
    return {"df", "show how much space is used and available", "  stag df nfs://server/data\n",
            "JSON: a number above 2^53 is also there as a string, in 'size_exact' and so on.\n"};
  }
  void declare(Arguments& arguments) override {
    arguments.human_readable(human_, "sizes like 4.0 GiB; always so without --json");
    arguments.flag("--json", json_, "an array of objects, sizes in bytes");
    declare_urls(arguments, "export, or anything in it");
  }

 private:
  Task<Outcome<Ok>> act(Run&, Remote& remote) override {
    const Outcome<Node> node = co_await remote.named();
    if (!node) co_return Failure{node.error()};
    const Outcome<FileSystemUsage> usage = co_await remote.files().usage(node->handle);
    if (!usage) co_return Failure{usage.error()};
    if (json_)
      array_.add(object(remote, *usage));
    else
      print(remote, *usage);
    co_return Ok{};
  }
  void finish() override {
    if (json_) put("{}\n", array_.text());
  }

  static Json object(Remote& remote, const FileSystemUsage& usage) {
    Json json;
    json.set("url", to_string(remote.url()))
        .set_quantity("size", usage.total_bytes)
        .set_quantity("used", usage.total_bytes - usage.free_bytes)
        .set_quantity("available", usage.available_bytes)
        .set_quantity("files", usage.total_files)
        .set_quantity("files_available", usage.available_files);
    return json;
  }
  void print(Remote& remote, const FileSystemUsage& usage) {
    const std::uint64_t used = usage.total_bytes - usage.free_bytes;
    if (!headed_)
      put("{:>11} {:>11} {:>11} {:>5} {:>12}  where\n", "size", "used", "available", "use",
          "files left");
    headed_ = true;
    const auto size = [](std::uint64_t bytes) { return human_size(static_cast<double>(bytes)); };
    put("{:>11} {:>11} {:>11} {:>5} {:>12}  {}\n", size(usage.total_bytes), size(used),
        size(usage.available_bytes), share_of(used, usage.available_bytes), usage.available_files,
        to_string(remote.url()));
  }

  bool human_ = true, json_ = false, headed_ = false;
  Json array_ = Json::array();
};

}  // namespace

std::unique_ptr<Command> make_df() {
  return std::make_unique<Df>();
}

}  // namespace stag::cli
