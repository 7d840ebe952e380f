#include "cli/commands/remote_command.h"

#include <fmt/format.h>

namespace stag::cli {

using nfs::client::Error;

void RemoteCommand::declare_urls(Arguments& arguments, const std::string& help) {
  remote_.declare(arguments);
  arguments.positionals("URL", urls_, 1, help);
}

Exit RemoteCommand::run() {
  return on_loop([this](Run& run) { return all(run); });
}

Task<Exit> RemoteCommand::all(Run& run) {
  Exit exit = Exit::Done;
  for (const std::string& url : urls_) {
    const Outcome<Ok> done = co_await one(run, url);
    if (done) continue;
    exit = urls_.size() == 1 || done.error().cancelled() || done.error().sentence.empty()
               ? failed(done.error())
               : failed(fmt::format("{}: {}", url, explained(done.error())));
    if (run.cancel.cancelled()) break;
  }
  finish();
  co_return exit;
}

Task<Outcome<Ok>> RemoteCommand::one(Run& run, std::string url) {
  Outcome<std::unique_ptr<Remote>> remote = co_await Remote::open(run, std::move(url), remote_);
  if (!remote) co_return Failure{remote.error()};
  Outcome<Ok> done = co_await act(run, **remote);
  if (!done) {
    const Error why = co_await (*remote)->explained_by_exports(done.error());
    done = Failure{why};
  }
  co_await (*remote)->close();
  co_return done;
}

Task<Outcome<nfs::client::Handle>> RemoteCommand::parent_of(Remote& remote, Place place) {
  if (place.name.empty() || place.name == "." || place.name == "..")
    co_return Failure{
        Error::of_local("the URL names the export itself; name something that is in it")};
  const Outcome<nfs::client::Node> parent = co_await remote.files().walk(place.directory);
  if (!parent) co_return Failure{parent.error()};
  co_return parent->handle;
}

}  // namespace stag::cli
