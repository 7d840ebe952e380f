#include "cli/commands/pair_command.h"

#include <fmt/format.h>

namespace stag::cli {

using nfs::client::Error;
using nfs::client::Node;
using nfs::client::Url;

Outcome<std::string> PairCommand::path_within(Remote& remote, const std::string& url) {
  const Outcome<Url> parsed = Url::parse(url);
  if (!parsed) return Failure{parsed.error()};
  std::string root = remote.files().root_path();
  if (!root.ends_with('/')) root.push_back('/');
  const bool same_server = parsed->nfs_address() == remote.url().nfs_address();
  std::string path = nfs::client::tidy_path(parsed->path);
  // With '/' behind it, it is the name of a directory.
  if (parsed->path.ends_with('/') && path != "/") path.push_back('/');
  if (same_server && (path + "/").starts_with(root))
    return path.substr(std::min(root.size(), path.size()));
  return Failure{Error::of_url(
      fmt::format("'{}' is not in the export {} of {}; between exports, use 'stag cp'", url,
                  remote.files().root_path(), to_string(remote.url().nfs_address())))};
}

Task<Outcome<Slot>> PairCommand::slot_at(Remote& remote, std::string path) {
  const Place place = place_of(std::move(path));
  if (place.name.empty() || place.name == "." || place.name == "..")
    co_return Failure{
        Error::of_local("the URL names the export itself; name something that is in it")};
  const Outcome<Node> directory = co_await remote.files().walk(place.directory);
  if (!directory) co_return Failure{directory.error()};
  co_return Slot{*directory, place.name};
}

Task<Outcome<Slot>> PairCommand::slot_at_or_in(Remote& remote, std::string path, std::string other,
                                               bool directory) {
  const Outcome<Node> there = co_await remote.walk(path);
  if (there && there->attributes.type == nfs::client::FileType::Directory)
    co_return Slot{*there, place_of(std::move(other)).name, true};
  const bool missing = !there && there.error().is(nfs::client::Status::NoEntry);
  const bool free = missing && (directory || !path.ends_with('/'));
  if (!there && !free) co_return Failure{there.error()};
  co_return co_await slot_at(remote, std::move(path));
}

}  // namespace stag::cli
