#include <fmt/format.h>
#include <sys/stat.h>

#include <ctime>

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
            "  stag touch -d '2024-05-01 12:30' nfs://server/data/report\n"
            "  stag touch -r report.txt nfs://server/data/report\n"};
  }
  void declare(Arguments& arguments) override {
    arguments.flag("-c,--no-create", existing_, "make no new files");
    arguments.flag("-a", accessed_, "the time of the last access only");
    arguments.flag("-m", modified_, "the time of the last change only");
    arguments.text("-d,--date", date_, "DATE",
                   "that time, not now: 2024-05-01, '2024-05-01 12:30:00', with Z after it in UTC, "
                   "or +02:00 and the like for the offset of a zone, @SECONDS since 1970");
    arguments.text("-r,--reference", reference_, "FILE", "the times of this file of this machine");
    arguments.text("-t", stamp_, "STAMP",
                   "that time, as touch(1) writes it: [[CC]YY]MMDDhhmm[.ss]");
    declare_urls(arguments, "file or directory");
  }

  Exit run() override {
    if (const std::optional<std::string> wrong = understand()) return misused(*wrong);
    return RemoteCommand::run();
  }

 private:
  std::optional<std::string> understand() {
    if ((date_ ? 1 : 0) + (reference_ ? 1 : 0) + (stamp_ ? 1 : 0) > 1)
      return "say the time once: with -d, -r or -t";
    if (reference_) return take_times_of(*reference_);
    if (!date_ && !stamp_) return std::nullopt;
    time_ = date_ ? parse_date(*date_) : parse_stamp(*stamp_, std::time(nullptr));
    access_time_ = time_;
    if (time_) return std::nullopt;
    if (stamp_)
      return fmt::format("'{}' is no time; write [[CC]YY]MMDDhhmm[.ss], as 202405011230", *stamp_);
    return fmt::format("'{}' is no date; write 2024-05-01, '2024-05-01 12:30' or @SECONDS", *date_);
  }
  std::optional<std::string> take_times_of(const std::string& file) {
    struct stat known {};
    if (::stat(file.c_str(), &known) != 0)
      return fmt::format("--reference '{}': there is no such file on this machine", file);
    time_ = time_of(known.st_mtim);
    access_time_ = time_of(known.st_atim);
    return std::nullopt;
  }

  bool sets_access() const { return accessed_ || !modified_; }
  bool sets_modification() const { return modified_ || !accessed_; }
  // Whether the version of NFS has the times that are set.
  bool can_be_told(const TimeRange& range) const {
    const auto within = [&range](const std::optional<nfs::client::Time>& time) {
      return !time || (time->seconds >= range.first && time->seconds <= range.last);
    };
    return (!sets_access() || within(access_time_)) && (!sets_modification() || within(time_));
  }
  static SetTime to_set(const std::optional<nfs::client::Time>& time) {
    return time ? SetTime::to(*time) : SetTime::now();
  }

  Task<Outcome<Ok>> act(Run&, Remote& remote) override {
    if (!can_be_told(remote.times()))
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
    if (sets_access()) times.accessed = to_set(access_time_);
    if (sets_modification()) times.modified = to_set(time_);
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
  std::optional<std::string> date_, reference_, stamp_;
  std::optional<nfs::client::Time> time_, access_time_;  // nullopt: now
};

}  // namespace

std::unique_ptr<Command> make_touch() {
  return std::make_unique<Touch>();
}

}  // namespace stag::cli
