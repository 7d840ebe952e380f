#include "cli/support/mode.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>

namespace stag::cli {
namespace {

constexpr std::uint32_t kAll = 07777;
constexpr std::uint32_t kSetIds = 06000;
constexpr std::size_t kUsualDigits = 4;

std::uint32_t who_bits(char who) {
  switch (who) {
    case 'u':
      return 04700;
    case 'g':
      return 02070;
    case 'o':
      return 01007;
    case 'a':
      return kAll;
    default:
      return 0;
  }
}

std::uint32_t permission_bits(char permission) {
  switch (permission) {
    case 'r':
      return 0444;
    case 'w':
      return 0222;
    case 'x':
      return 0111;
    case 's':
      return 06000;
    case 't':
      return 01000;
    default:
      return 0;
  }
}

}  // namespace

std::uint32_t current_umask() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return mask;
}

Result<ModeChange, std::string> ModeChange::parse(std::string_view text, std::uint32_t umask) {
  ModeChange change;
  std::uint32_t octal = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), octal, 8);
  if (error == std::errc() && end == text.data() + text.size() && octal <= kAll) {
    const std::uint32_t named = text.size() > kUsualDigits ? kAll : octal;
    change.clauses_.push_back({.who = kAll, .how = '=', .bits = octal, .set_ids = named & kSetIds});
    return change;
  }
  for (std::string_view rest = text;;) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    if (!parse_clause(rest.substr(0, comma), umask, change.clauses_))
      return Failure{
          fmt::format("'{}' is no mode; write it octal (644) or like u=rw,go=r or +x", text)};
    if (comma == rest.size()) return change;
    rest.remove_prefix(comma + 1);
  }
}

bool ModeChange::parse_clause(std::string_view text, std::uint32_t umask,
                              std::vector<Clause>& clauses) {
  std::uint32_t who = 0;
  while (!text.empty() && who_bits(text.front()) != 0) {
    who |= who_bits(text.front());
    text.remove_prefix(1);
  }
  const std::uint32_t named = who == 0 ? kAll & ~umask : who;
  if (who == 0) who = kAll;
  if (text.empty()) return false;
  // One or more of +rwx-s=g...
  while (!text.empty()) {
    Clause clause;
    clause.who = who;
    clause.named = named;
    clause.how = text.front();
    if (clause.how != '+' && clause.how != '-' && clause.how != '=') return false;
    text.remove_prefix(1);
    const std::size_t copied =
        text.empty() ? text.npos : std::string_view("ogu").find(text.front());
    if (copied != text.npos) {
      clause.copied = static_cast<unsigned>(3 * copied);
      text.remove_prefix(1);
    }
    for (; !clause.copied && !text.empty() &&
           std::string_view("rwxstX").find(text.front()) != text.npos;
         text.remove_prefix(1)) {
      clause.bits |= permission_bits(text.front()) & named;
      clause.searchable = clause.searchable || text.front() == 'X';
    }
    clause.set_ids = clause.bits & kSetIds;
    clauses.push_back(clause);
  }
  return true;
}

std::uint32_t ModeChange::apply(std::uint32_t mode, bool directory) const {
  for (const Clause& clause : clauses_) {
    std::uint32_t bits = clause.bits;
    if (clause.copied) bits |= ((mode >> *clause.copied) & 07) * 0111 & clause.named;
    if (clause.searchable && (directory || (mode & 0111) != 0)) bits |= 0111 & clause.named;
    const std::uint32_t left = directory ? kSetIds & ~clause.set_ids : 0;
    if (clause.how == '=') mode &= ~clause.who | left;
    mode = clause.how == '-' ? mode & ~bits : mode | bits;
  }
  return mode;
}

}  // namespace stag::cli
