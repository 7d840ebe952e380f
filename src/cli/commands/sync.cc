#include "cli/commands.h"
#include "cli/commands/copy_command.h"

namespace stag::cli {
namespace {

constexpr std::uint64_t kMostDeleted = std::uint64_t{1} << 40;
constexpr std::string_view kSyncNotes =
    "What has the size and the time of its source is taken for the same. Modes, times and, where\n"
    "that is permitted, owners become those of the source. Symbolic links stay what they are;\n"
    "SRC and DST are followed.\n"
    "A file with several links is replaced, and its other names keep the old one; what has\n"
    "several names in the source has them in the copy. FIFOs, sockets and, where that is\n"
    "permitted, devices are made anew; what cannot be made is left out, and said to be.\n"
    "--delete also replaces what is of another kind, such as a directory by a file, if the source\n"
    "can be read. Where a directory of the source cannot be read, nothing is removed from its\n"
    "copy. What --exclude matches stays in the destination.\n"
    "The other options are as 'stag cp --help' says.\n";

class Sync final : public CopyCommand {
 public:
  About about() const override {
    return {"sync", "make a directory the same as another one, on a server or from one",
            "  stag sync --delete --dry-run reports nfs://server/data/reports\n"
            "  stag sync --delete --max-delete 100 reports "
            "nfs://server/data/reports\n"
            "  stag sync nfs://server/data/reports reports\n",
            kSyncNotes};
  }
  void declare(Arguments& arguments) override {
    arguments.flag("--delete", options_.remove_others, "remove what the source does not have");
    arguments.number("--max-delete", options_.max_delete, 0, kMostDeleted,
                     "with --delete, remove at most so many files and directories; more stay, and "
                     "are a failure");
    arguments.flag("-n,--dry-run", options_.dry_run, "change nothing, print what would be done");
    arguments.flag("--checksum", checksum_, "compare contents, byte by byte, not sizes and times");
    arguments.flag("-a,-r,--archive,--recursive", always_, "as always");
    declare_copying(arguments);
    arguments.positional("SRC", source_, "the directory that is to be copied");
    arguments.positional("DST", destination_, "what is to be the same; one of them is a URL");
  }
  Exit run() override {
    contents_only_ = true;
    options_.recursive = true;
    options_.directories = true;
    options_.preserve = {.mode = true, .owner = true, .times = true, .links = true};
    options_.specials = true;
    options_.replace_linked = true;
    options_.same = checksum_ ? Same::Content : Same::SizeAndTime;
    if (source_ == "-" || destination_ == "-")
      return misused("standard input and output cannot be made the same");
    if (const std::optional<Exit> wrong = check_paths({source_}, destination_)) return *wrong;
    return on_loop([&](Run& run) { return copy_all(run, {source_}, destination_); });
  }

 private:
  std::string source_, destination_;
  bool checksum_ = false;
  bool always_ = false;  // for users who are used to rsync -a
};

}  // namespace

std::unique_ptr<Command> make_sync() {
  return std::make_unique<Sync>();
}

}  // namespace stag::cli
