#include "cli/commands/tree_command.h"

#include <fmt/format.h>

namespace stag::cli {

using nfs::client::Error;
using nfs::client::Node;

Task<Outcome<Ok>> TreeCommand::walk_all(Run& run, Remote& remote, nfs::client::Links links) {
  const Outcome<Node> top = co_await remote.named(links);
  if (!top) co_return Failure{top.error()};
  top_path_ = remote.url().path;
  while (top_path_.size() > 1 && top_path_.ends_with('/')) top_path_.pop_back();
  top_url_ = to_string(remote.url());
  failed_ = false;
  TreeWalk walk(run, remote, *this);
  TreeEntry entry;
  entry.name = place_of(top_path_).name;
  entry.node = *top;
  co_await walk.walk(std::move(entry));
  co_return ended(run);
}

Outcome<Ok> TreeCommand::ended(const Run& run) const {
  if (run.cancel.cancelled())
    return Failure{Error::of_call({"walk", {}}, rpc::CallError::transport(Reason::Cancelled))};
  if (failed_) return Failure{Error::of_local("")};
  return Ok{};
}

void TreeCommand::trouble(const TreeEntry& entry, const Error& error) {
  failed_ = true;
  if (!error.cancelled()) complain(fmt::format("'{}': {}", server_path(entry), explained(error)));
}

std::string TreeCommand::server_path(const TreeEntry& entry) const {
  if (entry.path.empty()) return top_path_;
  return top_path_ + (top_path_.ends_with('/') ? "" : "/") + entry.path;
}

}  // namespace stag::cli
