#include <fmt/format.h>
#include <sys/stat.h>

#include <optional>

#include "cli/commands.h"
#include "cli/copy/copier.h"
#include "cli/copy/progress_line.h"
#include "cli/support/arguments.h"
#include "cli/support/format.h"
#include "cli/support/json.h"
#include "cli/support/output.h"
#include "cli/support/remote.h"
#include "nfs/client/listing.h"

namespace stag::cli {
namespace {

using nfs::client::Listing;
using nfs::client::Url;

std::uint32_t current_umask() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return mask;
}

constexpr std::uint64_t kMostEntries = std::uint64_t{1} << 40;

constexpr std::string_view kNotes =
    "Without -p a new file has the permissions of its source within the umask, and never its\n"
    "setuid, setgid and sticky bits. With -p it has these only where the owner is kept, too.\n"
    "A file that is overwritten keeps its owner, mode and links. It is replaced in one step when\n"
    "the copy is complete; but it is written in place, where an interrupted copy leaves it\n"
    "incomplete, when it has several links, belongs to a user whom you cannot give a file,\n"
    "or is in a directory where you cannot make one.\n"
    "Ctrl-C removes what is not complete, which may take some seconds; a second one ends at "
    "once.\n";

// One end of the copy: remote, with its session, or local.
struct End {
  std::unique_ptr<Remote> remote{};
  std::unique_ptr<CopyEndpoint> side{};
  std::string path{};
};

class Cp final : public Command {
 public:
  About about() const override {
    return {"cp", "copy files in, out and between servers",
            "  stag cp -r -p reports nfs://server/data/\n"
            "  stag cp 'nfs://server/data/a.iso?proto=tcp' .\n",
            kNotes};
  }
  void declare(Arguments& arguments) override {
    arguments.flag("-r,--recursive", options_.recursive,
                   "directories with all that is in them; symbolic links stay what they are");
    arguments.flag("-p,--preserve", options_.preserve,
                   "keep owner and group (where that is permitted), mode and times");
    arguments.number("-j,--jobs", jobs_, 1, 256, "files in flight");
    arguments.number("--max-entries", max_entries_, 1, kMostEntries,
                     "entries of one remote source with its directories; more count as a tree "
                     "that never ends");
    arguments.flag("--stats", stats_,
                   "print what was copied, how fast, and by which kind of chunk");
    arguments.flag("--json", json_, "the same as an object");
    remote_.declare(arguments);
    arguments.positionals("SRC... DST", paths_, 2,
                          "local paths or URLs; one side is a URL, or both: from server to server");
  }
  Exit run() override {
    options_.files_in_flight = jobs_;
    options_.mask = current_umask();
    const std::string& destination = paths_.back();
    for (std::size_t i = 0; i + 1 < paths_.size(); ++i)
      if (!Url::looks_like(paths_[i]) && !Url::looks_like(destination))
        return misused(
            fmt::format("neither '{}' nor '{}' is a URL; 'cp' copies on this machine, and a URL "
                        "looks like nfs://HOST/EXPORT/PATH",
                        paths_[i], destination));
    return on_loop([this](Run& run) { return work(run); });
  }

 private:
  std::string_view left_behind() const override {
    return "files called .stag-* may be left beside the destination; remove them";
  }

  Task<Exit> work(Run& run) {
    Progress progress;
    ProgressLine line(run.loop, progress);
    Outcome<End> to = co_await open(run, paths_.back(), progress);
    if (!to) co_return failed(to.error());
    Exit exit = co_await check_destination(run, *to);
    for (std::size_t i = 0; exit != Exit::Usage && i + 1 < paths_.size(); ++i) {
      const Exit one = co_await copy(run, paths_[i], *to, progress, line);
      if (one != Exit::Done) exit = one;
      if (run.cancel.cancelled()) break;
    }
    if (to->remote) co_await to->remote->close();
    line.clear();
    for (const std::string& path : progress.leftovers)
      complain(fmt::format("'{}' may be left; remove it", path));
    if (run.cancel.cancelled()) co_return failed("interrupted");
    report(progress, line.seconds());
    co_return exit;
  }

  Task<Outcome<End>> open(Run& run, std::string path, Progress& progress) {
    End end;
    if (!Url::looks_like(path)) {
      end.side = local_endpoint(run, progress);
      end.path = std::move(path);
      co_return std::move(end);
    }
    Outcome<std::unique_ptr<Remote>> remote = co_await Remote::open(run, path, remote_);
    if (!remote) co_return Failure{remote.error()};
    end.remote = *std::move(remote);
    end.side = remote_endpoint(*end.remote, progress);
    end.path = end.remote->path();
    if (!end.path.empty() && end.remote->url().path.ends_with('/')) end.path.push_back('/');
    co_return std::move(end);
  }

  // An interruption is reported once, at the end.
  Exit failed_by(const Run& run, const nfs::client::Error& error) const {
    return run.cancel.cancelled() ? Exit::Failed : failed(error);
  }

  // Several sources need a directory as destination.
  Task<Exit> check_destination(Run& run, End& to) {
    if (paths_.size() == 2) co_return Exit::Done;
    const Outcome<std::optional<CopyObject>> found = co_await to.side->find(to.path, Follow::Yes);
    if (!found) co_return failed_by(run, found.error());
    if (*found && (*found)->kind == Kind::Directory) co_return Exit::Done;
    co_return misused(
        fmt::format("'{}' is no directory, and several files cannot become one", paths_.back()));
  }

  Task<Exit> copy(Run& run, std::string source, End& to, Progress& progress, ProgressLine& line) {
    Outcome<End> from = co_await open(run, source, progress);
    if (!from) co_return failed_by(run, from.error());
    options_.max_entries = from->remote ? max_entries_ : 0;
    options_.one_server = from->remote && to.remote &&
                          from->remote->url().nfs_address() == to.remote->url().nfs_address();
    Copier copier(run, *from->side, *to.side, options_, progress, [&](const std::string& sentence) {
      line.clear();
      complain(sentence);
    });
    const std::string& named = from->remote ? from->remote->url().path : source;
    co_await copier.copy(from->path, base_name(named), to.path);
    co_await copier.complete();
    if (from->remote) co_await from->remote->close();
    co_return copier.all_well() ? Exit::Done : Exit::Failed;
  }

  void report(const Progress& progress, double seconds) const {
    const double rate = static_cast<double>(progress.bytes) / seconds;
    if (json_) {
      Json json;
      json.set("files", progress.files)
          .set("directories", progress.directories)
          .set("symlinks", progress.symlinks)
          .set("bytes", progress.bytes)
          .set("seconds", seconds)
          .set("bytes_per_second", rate)
          .set("moved", to_json(moved_));
      put("{}\n", json.text());
    } else if (stats_) {
      put("{} files, {} directories, {} symbolic links: {} in {:.2f} s, {}/s\n", progress.files,
          progress.directories, progress.symlinks, human_size(static_cast<double>(progress.bytes)),
          seconds, human_size(rate));
      print_moved();
    }
  }
  void print_moved() const {
    const auto line = [](std::string_view what, std::uint64_t count, std::uint64_t bytes) {
      put("  {:<28}{:>8}  {:>12}\n", what, count, human_size(static_cast<double>(bytes)));
    };
    line("RPCs, inline bytes", moved_.calls, moved_.inline_bytes);
    line("Read chunks", moved_.read_chunks, moved_.read_chunk_bytes);
    line("Write chunks", moved_.write_chunks, moved_.write_chunk_bytes);
    line("Position Zero Read chunks", moved_.position_zero_chunks, moved_.position_zero_bytes);
    line("Reply chunks", moved_.reply_chunks, moved_.reply_chunk_bytes);
  }

  rpc::rdma::TransferStats moved_;
  RemoteOptions remote_{.moved = &moved_};
  CopyOptions options_;
  std::uint32_t jobs_ = 8;
  // The same limit as that of `ls` and `rm -r` (decision 0013).
  std::uint64_t max_entries_ = Listing::kMostKept;
  std::vector<std::string> paths_;
  bool stats_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_cp() {
  return std::make_unique<Cp>();
}

}  // namespace stag::cli
