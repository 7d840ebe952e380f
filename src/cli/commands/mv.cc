#include <fmt/format.h>

#include <set>
#include <vector>

#include "cli/commands.h"
#include "cli/commands/pair_command.h"

namespace stag::cli {
namespace {

using nfs::client::Error;
using nfs::client::Node;

bool same_slot(const Slot& a, const Slot& b) {
  const nfs::client::Attributes& ours = a.directory.attributes;
  const nfs::client::Attributes& theirs = b.directory.attributes;
  const bool same_id =
      ours.file_id == theirs.file_id && ours.file_system_id == theirs.file_system_id;
  return a.name == b.name && (same_id || a.directory.handle == b.directory.handle);
}

class Mv final : public PairCommand {
 public:
  About about() const override {
    return {"mv", "rename, or move within an export",
            "  stag mv nfs://server/data/draft nfs://server/data/2024/final\n"
            "  stag mv nfs://server/data/a nfs://server/data/b nfs://server/data/2024/\n"};
  }
  void declare(Arguments& arguments) override {
    remote_.declare(arguments);
    arguments.positionals("SRC... DST", sources_, 2,
                          "URLs of what to move, and of its new name, or of a directory to move it "
                          "into");
  }
  Exit run() override {
    destination_ = sources_.back();
    sources_.pop_back();
    return on_loop([this](Run& run) { return work(run); });
  }

 private:
  Task<Exit> work(Run& run) {
    Exit exit = Exit::Done;
    for (const std::string& source : sources_) {
      const Outcome<Ok> moved = co_await one(run, source);
      if (moved) continue;
      const Error& error = moved.error();
      const bool ends = sources_.size() == 1 || error.kind == Error::Kind::Url;
      if (ends || run.cancel.cancelled()) co_return failed(error);
      exit = failed(fmt::format("{}: {}", source, explained(error)));
    }
    co_return exit;
  }

  Task<Outcome<Ok>> one(Run& run, std::string source) {
    Outcome<std::unique_ptr<Remote>> remote =
        co_await Remote::open(run, std::move(source), remote_);
    if (!remote) co_return Failure{remote.error()};
    const Outcome<Ok> moved = co_await move(**remote);
    co_await (*remote)->close();
    co_return moved;
  }

  Task<Outcome<Ok>> move(Remote& remote) {
    const Outcome<std::string> path = path_within(remote, destination_);
    if (!path) co_return Failure{path.error()};
    const Outcome<Slot> from = co_await slot_at(remote, remote.path());
    if (!from) co_return Failure{from.error()};
    const Outcome<Node> source =
        co_await remote.entry(from->directory.handle, place_of(remote.slashed_path()));
    if (!source) co_return Failure{source.error()};
    const bool directory = source->attributes.type == nfs::client::FileType::Directory;
    const Outcome<Slot> to = co_await slot_at_or_in(remote, *path, remote.path(), directory);
    if (!to) co_return Failure{to.error()};
    if (const std::optional<Error> wrong = objection(*to)) co_return Failure{*wrong};
    Outcome<Ok> moved = co_await rename(remote, *source, *from, *to);
    const bool invalid = !moved && moved.error().is(nfs::client::Status::Invalid);
    if (invalid && directory && is_below(*path, remote.path()))
      co_return Failure{Error::of_local(
          fmt::format("'{}' cannot be moved into a subdirectory of itself", from->name))};
    if (moved) names_.insert(to->name);
    co_return moved;
  }

  // To several sources.
  std::optional<Error> objection(const Slot& to) const {
    if (sources_.size() > 1 && !to.inside)
      return Error::of_url(
          fmt::format("'{}' is no directory, and several files cannot become one", destination_));
    if (names_.contains(to.name))
      return Error::of_local(fmt::format("'{}' was moved to its place before", to.name));
    return std::nullopt;
  }

  // RENAME does nothing where both are names of one file (RFC 1813 3.3.14, RFC 8881 18.26.3): as
  // with mv(1), one is left.
  static Task<Outcome<Ok>> rename(Remote& remote, Node source, Slot from, Slot to) {
    const nfs::client::Handle& old_place = from.directory.handle;
    const nfs::client::Handle& new_place = to.directory.handle;
    const Outcome<Node> there = co_await remote.files().lookup(new_place, to.name);
    const bool linked = there && there->handle == source.handle && there->attributes.links > 1 &&
                        there->attributes.type != nfs::client::FileType::Directory;
    if (linked && !same_slot(from, to))
      co_return co_await remote.files().remove(old_place, from.name);
    const bool directory = source.attributes.type == nfs::client::FileType::Directory;
    const bool onto_directory = there && there->attributes.type == nfs::client::FileType::Directory;
    if (there && directory != onto_directory)
      co_return Failure{Error::of_local(
          directory ? fmt::format("'{}' is there and is no directory; remove it first", to.name)
                    : fmt::format("'{}' is there and is a directory; remove it first", to.name))};
    co_return co_await remote.files().rename(old_place, from.name, new_place, to.name);
  }
  // Servers only say that an argument is invalid (RFC 1813 3.3.14, RFC 8881 18.26.3).
  static bool is_below(const std::string& path, const std::string& directory) {
    const auto tidy = [](const std::string& text) {
      return nfs::client::tidy_path("/" + text) + "/";
    };
    return tidy(path).starts_with(tidy(directory));
  }

  RemoteOptions remote_;
  std::vector<std::string> sources_;
  std::string destination_;
  std::set<std::string> names_;  // that were moved into the destination
};

}  // namespace

std::unique_ptr<Command> make_mv() {
  return std::make_unique<Mv>();
}

}  // namespace stag::cli
