#include "cli/commands/copy_command.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <exception>
#include <iterator>
#include <map>
#include <set>

#include "cli/support/escape.h"
#include "cli/support/format.h"
#include "cli/support/json.h"
#include "cli/support/local_file.h"
#include "cli/support/mode.h"
#include "cli/support/output.h"
#include "cli/support/text_file.h"

namespace stag::cli {
namespace {

using nfs::client::Url;

constexpr std::uint64_t kMostEntries = std::uint64_t{1} << 40;
constexpr std::uint32_t kMostWindow = 366 * 86400;
constexpr std::string_view kStandard = "-";

// A file that is copied there is written to it, and does not replace it.
bool is_device(const std::string& destination) {
  struct stat known {};
  return !Url::looks_like(destination) && ::stat(destination.c_str(), &known) == 0 &&
         S_ISCHR(known.st_mode);
}

// The name of a source in the directory that it is copied to.
std::string name_of(const std::string& source) {
  if (source == kStandard) return "";
  const Outcome<Url> url = Url::parse(source);
  return base_name(Url::looks_like(source) && url ? url->path : source);
}

// Whether several may have one name in the destination. Without a name, what is in a source goes
// into it.
bool may_collide(const std::vector<std::string>& sources) {
  std::set<std::string> names;
  bool unnamed = false;
  for (const std::string& source : sources) {
    const std::string name = name_of(source);
    unnamed = unnamed || name.empty();
    names.insert(folded_name(name));
  }
  return sources.size() > 1 && (names.size() < sources.size() || unnamed);
}

// Where the object of `url` is in the session `remote`, if that is beside the object for which it
// was opened: there may be another export between them otherwise.
std::optional<std::string> path_beside(const Remote& remote, const std::string& url) {
  Outcome<Url> other = Url::parse(url);
  if (!other || remote.path().empty()) return std::nullopt;
  const Place mine = place_of(remote.url().path);
  const Place theirs = place_of(other->path);
  const bool named = !theirs.name.empty() && theirs.name != "." && theirs.name != "..";
  const std::string slash = other->path.ends_with('/') ? "/" : "";
  other->path = remote.url().path;
  // What a URL leaves open, the session has found out.
  if (!other->version) other->version = remote.url().version;
  if (!other->minor) other->minor = remote.url().minor;
  if (!named || mine.directory != theirs.directory || !(*other == remote.url()))
    return std::nullopt;
  const std::string directory = place_of(remote.path()).directory;
  return directory + (directory.empty() ? "" : "/") + theirs.name + slash;
}

// The server and the version that the numbers of the files of `url` come from.
std::string numbered_by(const Url& url) {
  return fmt::format("{} {}", to_string(url.nfs_address()), url.version.value_or(0));
}

// Standard input has no mode, owner or times to be kept, and nothing to be compared before it is
// read, which is possible once.
CopyOptions for_a_stream(CopyOptions options) {
  options.preserve = {};
  options.newer_only = false;
  options.same = Same::Never;
  options.go_on = false;
  return options;
}

}  // namespace

struct CopyCommand::Work {
  Run& run;
  const std::vector<std::string> sources;
  const std::string destination;
  Progress progress{};
  ProgressLine line{run.loop, progress};
  End to{};
  std::optional<Stage> stage{};
  // By the server that the files are of, and the version that numbers them; this machine has no
  // name.
  std::map<std::string, Copier::FirstNames> first_names{};
  std::set<std::string> given{};  // the sources so far
  JustMade just_made{};
  std::string outside_exports{};  // of the destination
};

void CopyCommand::declare_copying(Arguments& arguments) {
  arguments.texts("--exclude", excluded_, "GLOB",
                  "leave out what matches: a name at any depth, or with '/' a path below the "
                  "source; with '/' at its end, directories only; with '**' as rsync has it");
  arguments.texts("--exclude-from", exclusion_files_, "FILE",
                  "the same for each line of FILE; empty ones, and those with # or ; in front, are "
                  "passed over");
  arguments.number("--modify-window", options_.modify_window, 0, kMostWindow,
                   "seconds that times may differ by and count as the same: 1 for vfat, as with "
                   "rsync; whole seconds in the copy always do");
  arguments.number("-j,--jobs", jobs_, 1, 256, "files in flight, of all sources together");
  arguments.flag("-v,--verbose", verbose_, "print what is copied, and where to");
  arguments.number("--max-entries", max_entries_, 1, kMostEntries,
                   "entries of one remote source with its directories; more count as a tree "
                   "that never ends");
  arguments.flag("--stats", stats_, "print what was copied, how fast, and by which kind of chunk");
  arguments.flag("--json", json_, "the same as an object");
  remote_.declare(arguments);
}

std::optional<Exit> CopyCommand::check_paths(const std::vector<std::string>& sources,
                                             const std::string& destination) const {
  for (const std::string& source : sources)
    if (!Url::looks_like(source) && !Url::looks_like(destination))
      return misused(
          fmt::format("neither '{}' nor '{}' is a URL; 'stag {}' copies to and from servers, and a "
                      "URL looks like nfs://HOST/EXPORT/PATH",
                      source, destination, about().name));
  if (destination == kStandard && json_)
    return misused("standard output takes the files or --json, not both");
  return std::nullopt;
}

std::string_view CopyCommand::left_behind() const {
  return "files called .stag-* may be left beside the destination; remove them";
}

std::optional<Exit> CopyCommand::read_exclusions() {
  for (const std::string& path : exclusion_files_) {
    const std::optional<std::string> text = text_of_file(path);
    if (!text) return failed(local_trouble("read", path, errno));
    Result<std::vector<std::string>, std::string> patterns = Exclusion::patterns_in(*text);
    if (!patterns)
      return misused(
          fmt::format("'{}' says '{}': patterns are what is left out, and nothing else is known",
                      path, patterns.error()));
    std::ranges::move(*patterns, std::back_inserter(excluded_));
  }
  return std::nullopt;
}

Task<Exit> CopyCommand::copy_all(Run& run, std::vector<std::string> sources,
                                 std::string destination) {
  // Standard output takes one file after the other, has no names that could be linked, and keeps
  // nothing but data.
  const bool device = is_device(destination);
  const bool one_stream = device || destination == kStandard;
  options_.files_in_flight = one_stream ? 1 : jobs_;
  if (one_stream) options_.preserve = {};
  options_.mask = current_umask();
  if (const std::optional<Exit> wrong = read_exclusions()) co_return *wrong;
  options_.exclusion = Exclusion(excluded_);
  Work work{run, std::move(sources), std::move(destination)};
  // The destination's server may be that of a source, and copy by itself.
  remote_.offloads = std::ranges::any_of(work.sources, Url::looks_like);
  Task<Outcome<End>> opening = device ? open_device(run, work.destination, work.progress)
                                      : open(run, work.destination, work.progress);
  Outcome<End> to = co_await std::move(opening);
  if (!to) co_return failed(to.error());
  work.to = *std::move(to);
  Exit exit = Exit::Failed;
  std::exception_ptr exception;
  try {
    if (work.to.remote) work.outside_exports = co_await work.to.remote->outside_exports();
    exit = co_await check_destination(work);
    if (exit == Exit::Done) exit = co_await copy_sources(work);
  } catch (...) {
    exception = std::current_exception();
  }
  // What was begun refers to it, and a session is closed before it is destroyed.
  if (exception && work.stage && work.stage->copier) co_await work.stage->copier->settled();
  if (exception && work.stage && work.stage->from.remote) co_await work.stage->from.remote->close();
  if (work.to.remote) co_await work.to.remote->close();
  work.line.clear();
  for (const std::string& path : work.progress.leftovers)
    complain(fmt::format("'{}' may be left; remove it", path));
  if (exception) std::rethrow_exception(exception);
  if (run.cancel.cancelled()) co_return failed("interrupted");
  if (work.progress.unread) co_return exit_by_signal(SIGPIPE);
  report(work.progress, work.line.seconds());
  co_return exit;
}

Task<Exit> CopyCommand::copy_sources(Work& work) {
  Exit exit = Exit::Done;
  const auto note = [&exit](Exit one) {
    if (one != Exit::Done) exit = one;
  };
  std::size_t listed = 0;
  for (const std::string& source : work.sources) {
    if (work.run.cancel.cancelled()) break;
    work.progress.unlisted = work.sources.size() - listed++;
    if (!work.given.insert(source).second && work.to.path != kStandard) {
      work.line.clear();
      complain(fmt::format("'{}' is given more than once", source));
      continue;
    }
    const std::optional<std::string> path = co_await path_in_stage(work, source);
    if (!path) {
      note(co_await end_stage(work));
      note(co_await begin_stage(work, source));
      if (!work.stage) continue;
    }
    const std::string from = path.value_or(work.stage->from.path);
    const std::string name = contents_only_ ? "" : name_of(source);
    co_await work.stage->copier->copy(from, name, work.to.path);
  }
  work.progress.unlisted = 0;
  note(co_await end_stage(work));
  co_return exit;
}

// Whether it may be a directory that has an export of its own: in version 4 the number of its file
// system tells, in others nothing does.
Task<bool> CopyCommand::is_export(const End& from, std::string path) {
  const Outcome<std::optional<CopyObject>> found = co_await from.side->find(path, Follow::No);
  if (!found || !*found || (*found)->kind != Kind::Directory) co_return false;
  if (from.remote->url().version != 4) co_return true;
  const Outcome<std::optional<CopyObject>> above =
      co_await from.side->find(place_of(path).directory, Follow::Yes);
  co_return !above || !*above || (*above)->fsid != (*found)->fsid;
}

Task<std::optional<std::string>> CopyCommand::path_in_stage(Work& work, std::string source) {
  if (!work.stage || source == kStandard) co_return std::nullopt;
  const bool remote = Url::looks_like(source);
  const End& from = work.stage->from;
  if (!remote && !from.remote && from.path != kStandard) co_return source;
  if (!remote || !from.remote) co_return std::nullopt;
  std::optional<std::string> path = path_beside(*from.remote, source);
  if (!path || !options_.recursive) co_return path;
  const bool other = co_await is_export(from, *path);
  if (other) co_return std::nullopt;
  co_return path;
}

Task<Exit> CopyCommand::begin_stage(Work& work, std::string source) {
  Outcome<End> from = co_await open(work.run, std::move(source), work.progress);
  if (!from) co_return failed_by(work.run, from.error());
  work.stage.emplace();
  work.stage->from = *std::move(from);
  const End& end = work.stage->from;
  options_.max_entries = end.remote ? max_entries_ : 0;
  const bool collides = work.to.path != kStandard && may_collide(work.sources);
  options_.outside_exports = work.outside_exports;
  options_.just_made = collides ? &work.just_made : nullptr;
  options_.one_server = end.remote && work.to.remote &&
                        end.remote->url().nfs_address() == work.to.remote->url().nfs_address();
  const auto said = [this, &work](const std::string& sentence) {
    work.line.clear();
    complain(sentence);
  };
  const bool quiet = !(verbose_ || options_.dry_run) || json_ || work.destination == kStandard;
  const auto told = [&work](const std::string& source_path, const std::string& path) {
    work.line.clear();
    if (source_path.empty())
      put("removed '{}'\n", escaped(path));
    else
      put("'{}' -> '{}'\n", escaped(source_path), escaped(path));
  };
  const bool stream = !end.remote && end.path == kStandard;
  if (stream) work.progress.total_unknown = true;
  work.stage->copier = std::make_unique<Copier>(
      work.run, *end.side, *work.to.side, stream ? for_a_stream(options_) : options_,
      work.first_names[end.remote ? numbered_by(end.remote->url()) : std::string()], work.progress,
      said, quiet ? Copier::Announce() : Copier::Announce(told));
  co_return Exit::Done;
}

Task<Exit> CopyCommand::end_stage(Work& work) {
  if (!work.stage) co_return Exit::Done;
  co_await work.stage->copier->complete();
  const bool all_well = work.stage->copier->all_well();
  if (work.stage->from.remote) co_await work.stage->from.remote->close();
  work.stage.reset();
  co_return all_well ? Exit::Done : Exit::Failed;
}

Task<Outcome<CopyCommand::End>> CopyCommand::open_device(Run& run, std::string path,
                                                         Progress& progress) {
  End end;
  Outcome<std::unique_ptr<CopyEndpoint>> side = device_endpoint(run, progress, std::move(path));
  if (!side) co_return Failure{side.error()};
  end.side = *std::move(side);
  end.path = kStandard;
  co_return std::move(end);
}

Task<Outcome<CopyCommand::End>> CopyCommand::open(Run& run, std::string path, Progress& progress) {
  End end;
  if (!Url::looks_like(path)) {
    const bool standard = path == kStandard;
    end.side = standard ? standard_endpoint(run, progress) : local_endpoint(run, progress);
    end.path = std::move(path);
    co_return std::move(end);
  }
  // Version 4.2 alone has both kinds. Where the mode brings the lists along, those of version 4 do.
  remote_.version_3_first = options_.preserve.required.acls && !options_.preserve.extras.xattrs;
  remote_.others_if_refused = true;
  Outcome<std::unique_ptr<Remote>> remote = co_await Remote::open(run, path, remote_);
  if (!remote) co_return Failure{remote.error()};
  end.remote = *std::move(remote);
  std::exception_ptr exception;
  try {
    end.side = remote_endpoint(*end.remote, progress);
    end.path = end.remote->slashed_path();
  } catch (...) {
    exception = std::current_exception();
  }
  if (exception) co_await end.remote->close();
  if (exception) std::rethrow_exception(exception);
  co_return std::move(end);
}

// An interruption is reported once, at the end.
Exit CopyCommand::failed_by(const Run& run, const nfs::client::Error& error) const {
  return run.cancel.cancelled() ? Exit::Failed : failed(error);
}

Task<Exit> CopyCommand::check_destination(Work& work) {
  if (work.sources.size() == 1 || work.destination == kStandard) co_return Exit::Done;
  const Outcome<std::optional<CopyObject>> found =
      co_await work.to.side->find(work.to.path, Follow::Yes);
  if (!found) co_return failed_by(work.run, found.error());
  if (*found && (*found)->kind == Kind::Directory) co_return Exit::Done;
  co_return misused(
      fmt::format("'{}' is no directory, and several files cannot become one", work.destination));
}

void CopyCommand::report(const Progress& progress, double seconds) const {
  const double rate = static_cast<double>(progress.bytes) / seconds;
  if (json_) {
    Json json;
    json.set("files", progress.files)
        .set("directories", progress.directories)
        .set("symlinks", progress.symlinks)
        .set("specials", progress.specials)
        .set("skipped", progress.skipped)
        .set("adjusted", progress.adjusted)
        .set("removed", progress.removed)
        .set("bytes", progress.bytes)
        .set("seconds", seconds)
        .set("bytes_per_second", rate)
        .set("moved", to_json(transfer_stats_));
    put("{}\n", json.text());
  } else if (stats_) {
    const std::string specials =
        progress.specials == 0 ? "" : fmt::format(", {} special files", progress.specials);
    put("{} files, {} directories, {} symbolic links{}: {} in {:.2f} s, {}/s\n", progress.files,
        progress.directories, progress.symlinks, specials,
        human_size(static_cast<double>(progress.bytes)), seconds, human_size(rate));
    print_moved();
  }
}

void CopyCommand::print_moved() const {
  const auto line = [](std::string_view what, std::uint64_t count, std::uint64_t bytes) {
    put("  {:<28}{:>8}  {:>12}\n", what, count, human_size(static_cast<double>(bytes)));
  };
  line("RPCs, inline bytes", transfer_stats_.calls, transfer_stats_.inline_bytes);
  line("Read chunks", transfer_stats_.read_chunks, transfer_stats_.read_chunk_bytes);
  line("Write chunks", transfer_stats_.write_chunks, transfer_stats_.write_chunk_bytes);
  line("Position Zero Read chunks", transfer_stats_.position_zero_chunks,
       transfer_stats_.position_zero_bytes);
  line("Reply chunks", transfer_stats_.reply_chunks, transfer_stats_.reply_chunk_bytes);
}

}  // namespace stag::cli
