#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/commands/copy_command.h"

namespace stag::cli {
namespace {

constexpr std::string_view kNotes =
    "'-' as SRC is standard input, as DST standard output. Standard input is copied whatever is\n"
    "there, but with -n; -p has nothing of it to keep.\n"
    "Without -p a new file has the permissions of its source within the umask, and never its\n"
    "setuid, setgid and sticky bits. With -p it has these only where the owner is kept, too.\n"
    "Extended attributes are kept with -a and --preserve=xattr, not with -p.\n"
    "A file that is overwritten keeps its owner, mode and links. It is replaced in one step when\n"
    "the copy is complete; but it is written in place, where an interrupted copy leaves it\n"
    "incomplete, with --inplace, when it has several links (but with -a or --preserve=links: the\n"
    "other names keep the old file), belongs to a user whom you cannot give a file, is in a\n"
    "directory where you cannot make one, or, without -p, has extended attributes or an access\n"
    "control list, which it keeps.\n"
    "--continue takes what is there for the beginning of the source, as an interrupted copy with\n"
    "--continue or --inplace leaves it; with --checksum it is compared before.\n"
    "Ctrl-C removes what is not complete, which may take some seconds; a second one ends at "
    "once.\n";

// The words of --preserve=LIST, as cp(1) has them; "true" is a flag without a list.
Result<Preserve, std::string> preserve_of(std::string_view list) {
  Preserve preserve;
  while (!list.empty()) {
    const std::string_view word = list.substr(0, list.find(','));
    list.remove_prefix(std::min(word.size() + 1, list.size()));
    const bool all = word == "all";
    const bool plain = word == "true";
    constexpr std::string_view kWords[] = {"mode",  "ownership", "timestamps", "links",
                                           "xattr", "acl",       "all",        "true"};
    if (std::ranges::find(kWords, word) == std::end(kWords))
      return Failure{fmt::format(
          "--preserve '{}' is unknown; there are mode, ownership, timestamps, links, xattr, acl "
          "and all",
          word)};
    preserve.extras.xattrs = preserve.extras.xattrs || all || word == "xattr";
    preserve.required.xattrs = preserve.required.xattrs || word == "xattr";
    preserve.required.acls = preserve.required.acls || word == "acl";
    preserve.mode = preserve.mode || all || plain || word == "mode";
    // A mode alone shows the mask of a list in the place of its group's rights.
    preserve.extras.acls = preserve.extras.acls || preserve.mode || word == "acl";
    preserve.owner = preserve.owner || all || plain || word == "ownership";
    preserve.times = preserve.times || all || plain || word == "timestamps";
    preserve.links = preserve.links || all || word == "links";
  }
  return preserve;
}

class Cp final : public CopyCommand {
 public:
  About about() const override {
    return {"cp", "copy files in, out and between servers",
            "  stag cp -a reports nfs://server/data/\n"
            "  stag cp 'nfs://server/data/a.iso?proto=tcp' .\n"
            "  tar cz folder | stag cp - nfs://server/data/folder.tar.gz\n",
            kNotes};
  }
  void declare(Arguments& arguments) override {
    arguments.flag("-r,-R,--recursive", options_.recursive,
                   "directories with all that is in them; symbolic links stay what they are");
    arguments.flag_or_texts(
        "-p,--preserve", preserve_,
        "keep mode and access control list, owner and group (where that is permitted) and times; "
        "or --preserve=LIST of mode, ownership, timestamps, links, xattr, acl, all");
    arguments.flag("-a,--archive", archive_,
                   "the same as -r --preserve=all, and FIFOs, sockets and devices are copied");
    arguments.flag("-u,--update", options_.newer_only,
                   "leave what is as new as its source, or newer");
    arguments.flag("-n,--no-clobber", options_.keep_existing, "leave what is there");
    arguments.flag("--checksum", checksum_,
                   "compare what is there with its source, byte by byte, and leave what is the "
                   "same");
    arguments.flag("--inplace", options_.in_place,
                   "write files under their names from the start, without temporary ones");
    arguments.flag("--continue", options_.go_on,
                   "go on after what an interrupted copy has left; implies --inplace");
    declare_copying(arguments);
    arguments.positionals("SRC... DST", paths_, 2,
                          "local paths or URLs; one side is a URL, or both: from server to server");
  }
  Exit run() override {
    if (archive_) preserve_ += preserve_.empty() ? "all" : ",all";
    const Result<Preserve, std::string> preserve = preserve_of(preserve_);
    if (!preserve) return misused(preserve.error());
    options_.preserve = *preserve;
    options_.recursive = options_.recursive || archive_;
    options_.specials = archive_;
    options_.in_place = options_.in_place || options_.go_on;
    options_.replace_linked = options_.preserve.links;
    if (checksum_) options_.same = Same::Content;
    const std::string destination = paths_.back();
    paths_.pop_back();
    if (const std::optional<Exit> wrong = check_paths(paths_, destination)) return *wrong;
    return on_loop([&](Run& run) { return copy_all(run, paths_, destination); });
  }

 private:
  std::string preserve_;
  std::vector<std::string> paths_;
  bool archive_ = false, checksum_ = false;
};

}  // namespace

std::unique_ptr<Command> make_cp() {
  return std::make_unique<Cp>();
}

}  // namespace stag::cli
