#include "cli/commands/find_conditions.h"

#include <fmt/format.h>
#include <fnmatch.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "cli/support/date.h"
#include "cli/support/user_id.h"

namespace stag::cli {
namespace {

using nfs::client::FileType;
using nfs::client::Time;
using Candidate = FindConditions::Candidate;
using Test = std::function<bool(const Candidate&)>;
// Or a sentence that says what is wrong with it.
using Parsed = Result<Test, std::string>;

constexpr std::int64_t kMinute = 60, kDay = 24 * 60 * 60;

// "+N", "-N" or "N": more than, less than, or just so many.
struct Count {
  char how = '=';
  std::uint64_t number = 0;
  std::string_view rest;  // after the number
};

std::optional<Count> parse_count(std::string_view text) {
  Count count;
  if (text.starts_with('+') || text.starts_with('-')) {
    count.how = text.front();
    text.remove_prefix(1);
  }
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), count.number);
  if (parsed.ec != std::errc()) return std::nullopt;
  count.rest = text.substr(static_cast<std::size_t>(parsed.ptr - text.data()));
  return count;
}

Parsed size_test(const std::string& text) {
  const Failure<std::string> mistake{
      fmt::format("--size '{}' is no size; write 10M, +1G or -512c", text)};
  const std::optional<Count> count = parse_count(text);
  if (!count) return mistake;
  constexpr std::pair<std::string_view, std::uint64_t> kUnits[] = {
      {"", 512}, {"c", 1}, {"w", 2}, {"b", 512}, {"k", 1024}, {"M", 1 << 20}, {"G", 1 << 30}};
  const auto* const known =
      std::ranges::find(kUnits, count->rest, [](const auto& unit) { return unit.first; });
  if (known == std::end(kUnits)) return mistake;
  return Test(
      [how = count->how, number = count->number, unit = known->second](const Candidate& candidate) {
        const std::uint64_t size = candidate.attributes.size;
        const std::uint64_t units = size / unit + (size % unit != 0 ? 1 : 0);
        return how == '+' ? units > number : how == '-' ? units < number : units == number;
      });
}

// As find(1) counts: a file is N days old until it is N + 1 days old, and N minutes old in the
// minute before that.
Parsed age_test(const std::string& option, const std::string& text, const Time& now) {
  constexpr std::uint64_t kMost = 1u << 31;
  const std::optional<Count> count = parse_count(text);
  if (!count || !count->rest.empty() || count->number > kMost)
    return Failure{
        fmt::format("{} '{}' is no number; write 30, +30 (older) or -30 (younger)", option, text)};
  const bool days = option == "--mtime";
  const std::int64_t unit = days ? kDay : kMinute;
  const auto before = [&now, unit](std::int64_t number) {
    return Time{now.seconds - number * unit, now.nanoseconds};
  };
  const auto number = static_cast<std::int64_t>(count->number);
  const Time since = before(days ? number + 1 : number);
  const Time until = before(days ? number : number - 1);
  switch (count->how) {
    case '+':
      return Test([since, days](const Candidate& candidate) {
        const Time& modified = candidate.attributes.modified;
        return days ? modified <= since : modified < since;
      });
    case '-':
      return Test([limit = before(number)](const Candidate& candidate) {
        return candidate.attributes.modified > limit;
      });
    default:
      return Test([since, until](const Candidate& candidate) {
        const Time& modified = candidate.attributes.modified;
        return modified > since && modified <= until;
      });
  }
}

Test after(const Time& time) {
  return [time](const Candidate& candidate) { return candidate.attributes.modified > time; };
}

Parsed newer_date_test(const std::string& text) {
  const std::optional<Time> date = parse_date(text);
  if (date) return after(*date);
  return Failure{
      fmt::format("--newermt '{}' is no date; write 2024-05-01 or '2024-05-01 12:30'", text)};
}

Parsed newer_test(const std::string& file) {
  struct stat known {};
  if (::stat(file.c_str(), &known) != 0)
    return Failure{fmt::format("--newer '{}': there is no such file on this machine", file)};
  return after(time_of(known.st_mtim));
}

Parsed type_test(const std::string& text) {
  constexpr std::string_view kLetters = "fdlbcsp";
  constexpr FileType kTypes[] = {
      FileType::Regular,         FileType::Directory, FileType::Symlink, FileType::BlockDevice,
      FileType::CharacterDevice, FileType::Socket,    FileType::Fifo};
  std::vector<FileType> types;
  bool good = text.size() % 2 == 1;
  for (std::size_t i = 0; good && i < text.size(); ++i) {
    const std::size_t which = kLetters.find(text[i]);
    good = i % 2 == 0 ? which != std::string_view::npos : text[i] == ',';
    if (good && i % 2 == 0) types.push_back(kTypes[which]);
  }
  if (!good)
    return Failure{fmt::format(
        "--type '{}': write f, d, l, b, c, p or s, or several with ',' between them", text)};
  return Test([types](const Candidate& candidate) {
    return std::ranges::find(types, candidate.attributes.type) != types.end();
  });
}

Parsed user_test(const std::string& name) {
  const std::optional<std::uint32_t> uid = user_id(name);
  if (!uid) return Failure{fmt::format("--user '{}': there is no such user on this machine", name)};
  return Test([uid = *uid](const Candidate& candidate) { return candidate.attributes.uid == uid; });
}

Test glob_test(const std::string& pattern, std::string Candidate::*text, int flags) {
  return [pattern, text, flags](const Candidate& candidate) {
    return fnmatch(pattern.c_str(), (candidate.*text).c_str(), flags) == 0;
  };
}

Parsed parse_test(const std::string& option, const std::string& value, const Time& now) {
  if (option == "--name") return glob_test(value, &Candidate::name, 0);
  if (option == "--iname") return glob_test(value, &Candidate::name, FNM_CASEFOLD);
  if (option == "--path") return glob_test(value, &Candidate::path, 0);
  if (option == "--type") return type_test(value);
  if (option == "--size") return size_test(value);
  if (option == "--user") return user_test(value);
  if (option == "--newer") return newer_test(value);
  if (option == "--newermt") return newer_date_test(value);
  return age_test(option, value, now);
}

}  // namespace

void FindConditions::take(Arguments& arguments, const std::string& option,
                          const std::string& placeholder, const std::string& help) {
  arguments.in_order(option, placeholder, help, [this, option](const std::string& value) {
    given_.push_back({option, value, std::exchange(negate_next_, false)});
  });
}

void FindConditions::declare(Arguments& arguments) {
  take(arguments, "--name", "GLOB", "whose name matches");
  take(arguments, "--iname", "GLOB", "the same, small letters or large");
  take(arguments, "--path", "GLOB", "whose path on the server matches");
  take(arguments, "--type", "TEXT:{f,d,l,b,c,p,s}",
       "plain files, directories, symbolic links, block or character devices, FIFOs or sockets; "
       "several with ',' between them: f,d");
  take(arguments, "--size", "[+-]N[cwbkMG]", "of that size");
  arguments.flag_in_order("--empty", "plain files and directories with nothing in them", [this] {
    given_.push_back({"--empty", "", std::exchange(negate_next_, false)});
  });
  take(arguments, "--user", "NAME", "of that user: a name of this machine, or a number");
  take(arguments, "--mtime", "[+-]N", "changed N days ago; +N: longer ago, -N: since then");
  take(arguments, "--mmin", "[+-]N", "the same in minutes");
  take(arguments, "--newer", "FILE", "changed after this file of this machine was");
  take(arguments, "--newermt", "DATE",
       "changed after that: 2024-05-01, '2024-05-01 12:30', @SECONDS");
  arguments.flag_in_order("--not", "the condition after it must not hold; also '!'",
                          [this] { negate_next_ = !negate_next_; });
}

void FindConditions::keep(bool negated, Test test) {
  if (!negated) return tests_.push_back(std::move(test));
  tests_.push_back([test = std::move(test)](const Candidate& one) { return !test(one); });
}

std::optional<std::string> FindConditions::understand_one(const Given& given, const Time& now) {
  if (given.option != "--empty") {
    Parsed parsed = parse_test(given.option, given.value, now);
    if (!parsed) return parsed.error();
    keep(given.negated, *std::move(parsed));
    return std::nullopt;
  }
  const bool wanted = !given.negated;
  const bool contradiction = emptiness_ && *emptiness_ != wanted;
  emptiness_ = wanted;
  keep(false, [wanted, contradiction](const Candidate& candidate) {
    if (contradiction || candidate.attributes.type == FileType::Directory) return !contradiction;
    const bool empty =
        candidate.attributes.type == FileType::Regular && candidate.attributes.size == 0;
    return empty == wanted;
  });
  return std::nullopt;
}

std::optional<std::string> FindConditions::understand(const Time& now) {
  if (negate_next_) return "there is no condition after the last --not";
  for (const Given& given : given_)
    if (std::optional<std::string> wrong = understand_one(given, now)) return wrong;
  return std::nullopt;
}

bool FindConditions::hold_for(const Candidate& candidate) const {
  return std::ranges::all_of(tests_, [&](const Test& test) { return test(candidate); });
}

}  // namespace stag::cli
