#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/commands/remote_command.h"
#include "cli/support/date.h"
#include "cli/support/mode.h"

namespace stag::cli {
namespace {

using nfs::client::CreateMode;
using nfs::client::Error;
using nfs::client::Handle;
using nfs::client::Node;
using nfs::client::SetAttributes;
using nfs::client::SetTime;

constexpr std::uint32_t kMode = 0666;  // of a new file, within the umask
constexpr int kMostLinks = 40;         // as FileSystem::walk() follows
constexpr const char* kDangling =
    "it is a symbolic link that leads to nothing; make or name its target";

class Touch final : public RemoteCommand {
 public:
  About about() const override {
    return {"touch", "set times to now, or make empty files",
            "  stag touch nfs://server/data/ready\n"
            "  stag touch -d '2024-05-01 12:30' nfs://server/data/report\n"};
  }
  void declare(Arguments& arguments) override {
    arguments.flag("-c,--no-create", existing_, "make no new files");
    arguments.flag("-a", accessed_, "the time of the last access only");
    arguments.flag("-m", modified_, "the time of the last change only");
    arguments.text("-d,--date", date_, "DATE",
                   "that time, not now: 2024-05-01, '2024-05-01 12:30:00', with Z behind in UTC, "
                   "or +02:00 and the like for the offset of a zone, @SECONDS since 1970");
    declare_urls(arguments, "file or directory");
  }

  Exit run() override {
    if (!date_) return RemoteCommand::run();
    const std::optional<nfs::client::Time> time = parse_date(*date_);
    if (!time)
      return misused(
          fmt::format("'{}' is no date; write 2024-05-01, '2024-05-01 12:30' or @SECONDS", *date_));
    seconds_ = time->seconds;
    time_ = SetTime::to(*time);
    return RemoteCommand::run();
  }

 private:
  Task<Outcome<Ok>> act(Run&, Remote& remote) override {
    const TimeRange range = remote.times();
    if (seconds_ && (*seconds_ < range.first || *seconds_ > range.last))
      co_return Failure{Error::of_local(fmt::format(
          "version {} of NFS has no times before 1970 and after February 2106; name version=4 in "
          "the URL",
          remote.url().version.value_or(3)))};
    Outcome<Node> node = co_await remote.named();
    if (!node && node.error().is(nfs::client::Status::NoEntry)) {
      if (existing_) co_return Ok{};
      if (!remote.slashed_path().ends_with('/')) node = co_await make(remote);
    }
    if (!node) co_return Failure{node.error()};
    SetAttributes times;
    if (accessed_ || !modified_) times.accessed = time_;
    if (modified_ || !accessed_) times.modified = time_;
    co_return co_await remote.files().setattr(node->handle, times);
  }

  static Task<Outcome<Node>> make(Remote& remote) {
    Place place = place_of(remote.path());
    Outcome<Handle> parent = co_await parent_of(remote, place);
    if (!parent) co_return Failure{parent.error()};
    // As with touch(1), a symbolic link that leads to nothing gets its target.
    for (int links = 0;; ++links) {
      const Outcome<Node> there = co_await remote.files().lookup(*parent, place.name);
      if (!there || there->attributes.type != nfs::client::FileType::Symlink) break;
      const Outcome<std::string> text =
          co_await remote.files().readlink(there->handle, there->attributes.size);
      if (!text) co_return Failure{text.error()};
      place = place_of(*text);
      const bool simple = !text->starts_with('/') && !place.name.empty() && !place.slash;
      if (!simple || links == kMostLinks) co_return Failure{Error::of_local(kDangling)};
      const Outcome<Node> directory = co_await remote.files().walk_from(*parent, place.directory);
      if (!directory) co_return Failure{Error::of_local(kDangling)};
      parent = directory->handle;
    }
    SetAttributes attributes;
    attributes.mode = kMode & ~current_umask();
    co_return co_await remote.files().create(*parent, place.name, attributes,
                                             CreateMode::Unchecked);
  }

  bool existing_ = false, accessed_ = false, modified_ = false;
  std::optional<std::string> date_;
  std::optional<std::int64_t> seconds_;  // of time_, where it is not now
  SetTime time_ = SetTime::now();
};

}  // namespace

std::unique_ptr<Command> make_touch() {
  return std::make_unique<Touch>();
}

}  // namespace stag::cli
