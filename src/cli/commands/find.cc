#include <fmt/format.h>
#include <fnmatch.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "cli/commands.h"
#include "cli/commands/tree_command.h"
#include "cli/support/date.h"
#include "cli/support/format.h"
#include "cli/support/json_list.h"
#include "cli/support/output.h"

namespace stag::cli {
namespace {

using nfs::client::Attributes;
using nfs::client::Error;
using nfs::client::FileType;
using nfs::client::Time;

constexpr std::string_view kFindNotes =
    "The options may have one dash, as those of find(1): 'stag find URL -name '*.o' -type f'.\n"
    "All that are given must hold. Sizes are counted as find(1) does: N[cwbkMG], in units rounded\n"
    "up, +N more than that, -N less; without a letter units of 512 bytes.\n"
    "Paths are those on the server. JSON is as 'stag ls --help' says, with 'path' beside 'name'.\n";

struct SizeTest {
  char how = '=';  // + - =
  std::uint64_t units = 0;
  std::uint64_t unit = 512;  // bytes

  bool holds(std::uint64_t size) const {
    const std::uint64_t count = size / unit + (size % unit != 0 ? 1 : 0);
    return how == '+' ? count > units : how == '-' ? count < units : count == units;
  }
};

std::optional<SizeTest> parse_size_test(std::string_view text) {
  SizeTest test;
  if (text.starts_with('+') || text.starts_with('-')) {
    test.how = text.front();
    text.remove_prefix(1);
  }
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), test.units);
  if (parsed.ec != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
  if (text.empty()) return test;
  constexpr std::pair<char, std::uint64_t> kUnits[] = {{'c', 1},    {'w', 2},       {'b', 512},
                                                       {'k', 1024}, {'M', 1 << 20}, {'G', 1 << 30}};
  for (const auto& [letter, unit] : kUnits)
    if (text.size() == 1 && text.front() == letter) return test.unit = unit, test;
  return std::nullopt;
}

std::optional<FileType> type_of(std::string_view letter) {
  constexpr std::pair<std::string_view, FileType> kTypes[] = {
      {"f", FileType::Regular},     {"d", FileType::Directory},       {"l", FileType::Symlink},
      {"b", FileType::BlockDevice}, {"c", FileType::CharacterDevice}, {"s", FileType::Socket},
      {"p", FileType::Fifo}};
  for (const auto& [name, type] : kTypes)
    if (name == letter) return type;
  return std::nullopt;
}

class Find final : public TreeCommand {
 public:
  About about() const override {
    return {.name = "find",
            .summary = "find files by name, type, size and time",
            .example =
                "  stag find nfs://server/data -name '*.log' -size +10M\n"
                "  stag find --type f --print0 nfs://server/data | xargs -0 -n 1 echo\n",
            .notes = kFindNotes,
            .one_dash = true};
  }
  void declare(Arguments& arguments) override {
    arguments.texts("--name", names_, "GLOB", "whose name matches");
    arguments.texts("--iname", any_case_, "GLOB", "the same, small letters or large");
    arguments.texts("--path", paths_, "GLOB", "whose path on the server matches");
    arguments.choices("--type", types_, "TEXT", {"f", "d", "l", "b", "c", "p", "s"},
                      "plain files, directories, symbolic links, block or character devices, FIFOs "
                      "or sockets");
    arguments.texts("--size", sizes_, "[+-]N[cwbkMG]", "of that size");
    arguments.texts("--newer", newer_, "FILE", "changed after this file of this machine was");
    arguments.texts("--newermt", newer_dates_, "DATE",
                    "changed after that: 2024-05-01, '2024-05-01 12:30', @SECONDS");
    arguments.number("--maxdepth", max_depth_, 0, Descent::kMostDepth,
                     "this far below the URL [all]");
    arguments.number("--mindepth", min_depth_, 0, Descent::kMostDepth, "no less far below");
    arguments.flag("--print0", zeros_, "a zero byte behind each path, for xargs -0");
    arguments.flag("--json", json_, "an array of objects");
    declare_urls(arguments, "where to begin");
  }
  Exit run() override {
    if (const std::optional<std::string> wrong = understand()) return misused(*wrong);
    return RemoteCommand::run();
  }

 private:
  std::optional<std::string> understand() {
    for (const std::string& size : sizes_) {
      const std::optional<SizeTest> test = parse_size_test(size);
      if (!test) return fmt::format("--size '{}' is none; write 10M, +1G or -512c", size);
      size_tests_.push_back(*test);
    }
    for (const std::string& text : newer_dates_) {
      const std::optional<Time> date = parse_date(text);
      if (!date)
        return fmt::format("--newermt '{}' is no date; write 2024-05-01 or '2024-05-01 12:30'",
                           text);
      only_after(*date);
    }
    for (const std::string& file : newer_) {
      struct stat known {};
      if (::stat(file.c_str(), &known) != 0)
        return fmt::format("--newer '{}': there is no such file on this machine", file);
      only_after({known.st_mtim.tv_sec, static_cast<std::uint32_t>(known.st_mtim.tv_nsec)});
    }
    return std::nullopt;
  }
  void only_after(const Time& time) {
    if (!after_ || time > *after_) after_ = time;
  }

  Task<Outcome<Ok>> act(Run& run, Remote& remote) override {
    return walk_all(run, remote, nfs::client::Links::FollowAllButLast);
  }
  void finish() override {
    if (json_) list_.end();
  }

  bool is_sure_to_enter(const TreeEntry& entry) const override {
    return !max_depth_ || entry.depth < *max_depth_;
  }
  Task<bool> enter(const TreeEntry& entry) override {
    if (entry.depth >= min_depth_ && matches(entry)) print(entry);
    co_return is_sure_to_enter(entry);
  }
  bool matches(const TreeEntry& entry) const {
    const Attributes& attributes = entry.node.attributes;
    const auto all_match = [](const std::vector<std::string>& patterns, const std::string& text,
                              int flags) {
      return std::ranges::all_of(patterns, [&](const std::string& pattern) {
        return fnmatch(pattern.c_str(), text.c_str(), flags) == 0;
      });
    };
    const auto of_type = [&attributes](const std::string& type) {
      return attributes.type == type_of(type);
    };
    const auto of_size = [&attributes](const SizeTest& test) {
      return test.holds(attributes.size);
    };
    return all_match(names_, entry.name, 0) && all_match(any_case_, entry.name, FNM_CASEFOLD) &&
           all_match(paths_, server_path(entry), 0) && std::ranges::all_of(types_, of_type) &&
           std::ranges::all_of(size_tests_, of_size) && (!after_ || attributes.modified > *after_);
  }
  void print(const TreeEntry& entry) {
    if (json_) {
      Json object = to_json(entry.name, entry.node.attributes);
      object.set_bytes("path", server_path(entry));
      object.set("url", top_url());
      list_.add(object);
    } else if (zeros_) {
      write_out(server_path(entry));
      write_out(std::string_view("\0", 1));
    } else {
      put("{}\n", shown(server_path(entry)));
    }
  }

  // Each condition may be given several times.
  std::vector<std::string> names_, any_case_, paths_, types_, sizes_, newer_, newer_dates_;
  std::vector<SizeTest> size_tests_;
  std::optional<Time> after_;
  std::optional<std::uint32_t> max_depth_;
  std::uint32_t min_depth_ = 0;
  bool zeros_ = false, json_ = false;
  JsonList list_;
};

}  // namespace

std::unique_ptr<Command> make_find() {
  return std::make_unique<Find>();
}

}  // namespace stag::cli
