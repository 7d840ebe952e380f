#include "cli/support/date.h"

#include <algorithm>
#include <charconv>
#include <ctime>

namespace stag::cli {
namespace {

constexpr std::size_t kNanoDigits = 9;

// Takes a number of exactly `digits` digits.
std::optional<int> take_number(std::string_view& text, std::size_t digits) {
  int value = 0;
  if (text.size() < digits || text.front() < '0' || text.front() > '9') return std::nullopt;
  const auto parsed = std::from_chars(text.data(), text.data() + digits, value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + digits) return std::nullopt;
  text.remove_prefix(digits);
  return value;
}

bool take(std::string_view& text, std::string_view wanted) {
  if (!text.starts_with(wanted)) return false;
  text.remove_prefix(wanted.size());
  return true;
}

// ".5" as nanoseconds, if that is there.
std::optional<std::uint32_t> take_fraction(std::string_view& text) {
  if (!take(text, ".")) return 0;
  std::uint32_t value = 0;
  std::size_t digits = 0;
  for (; !text.empty() && text.front() >= '0' && text.front() <= '9'; text.remove_prefix(1)) {
    if (digits++ < kNanoDigits) value = value * 10 + static_cast<std::uint32_t>(text.front() - '0');
  }
  if (digits == 0) return std::nullopt;
  for (; digits < kNanoDigits; ++digits) value *= 10;
  return value;
}

std::optional<nfs::client::Time> parse_epoch(std::string_view text) {
  std::int64_t seconds = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (parsed.ec != std::errc()) return std::nullopt;
  const bool negative = text.front() == '-';
  text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
  const std::optional<std::uint32_t> fraction = take_fraction(text);
  if (!fraction || !text.empty() || (negative && *fraction != 0)) return std::nullopt;
  return nfs::client::Time{seconds, *fraction};
}

// The part behind the day: "12:30:00.5".
bool take_clock(std::string_view& text, std::tm& parts, std::uint32_t& nanoseconds) {
  const std::optional<int> hour = take_number(text, 2);
  if (!hour || !take(text, ":")) return false;
  const std::optional<int> minute = take_number(text, 2);
  if (!minute) return false;
  parts.tm_hour = *hour;
  parts.tm_min = *minute;
  if (!take(text, ":")) return true;
  const std::optional<int> second = take_number(text, 2);
  const std::optional<std::uint32_t> fraction = second ? take_fraction(text) : std::nullopt;
  if (!fraction) return false;
  parts.tm_sec = *second;
  nanoseconds = *fraction;
  return true;
}

bool take_day(std::string_view& text, std::tm& parts) {
  const std::optional<int> year = take_number(text, 4);
  if (!year || !take(text, "-")) return false;
  const std::optional<int> month = take_number(text, 2);
  if (!month || !take(text, "-")) return false;
  const std::optional<int> day = take_number(text, 2);
  if (!day) return false;
  parts.tm_year = *year - 1900;
  parts.tm_mon = *month - 1;
  parts.tm_mday = *day;
  return true;
}

// "+02:00", "-0530" or "+02" behind the time of day, as seconds east of Greenwich; nothing where
// there is no sign. False: it is none.
bool take_offset(std::string_view& text, std::optional<int>& offset) {
  if (text.starts_with(" +") || text.starts_with(" -")) text.remove_prefix(1);
  if (!text.starts_with('+') && !text.starts_with('-')) return true;
  const int sign = text.front() == '+' ? 1 : -1;
  text.remove_prefix(1);
  const std::optional<int> hours = take_number(text, 2);
  const bool more = take(text, ":") || !text.empty();
  const std::optional<int> minutes = more ? take_number(text, 2) : 0;
  if (!hours || *hours > 23 || !minutes || *minutes > 59) return false;
  offset = sign * (*hours * 60 + *minutes) * 60;
  return true;
}

// mktime(3) takes the 31st of April for the 1st of May.
bool same_day(const std::tm& a, const std::tm& b) {
  return a.tm_year == b.tm_year && a.tm_mon == b.tm_mon && a.tm_mday == b.tm_mday;
}

// Of what was read. nullopt where there is no such day or time.
std::optional<std::int64_t> seconds_of(std::tm parts, bool utc) {
  if (parts.tm_hour > 23 || parts.tm_min > 59 || parts.tm_sec > 60) return std::nullopt;
  parts.tm_isdst = utc ? 0 : -1;
  // A leap second may be the first of the next day.
  const int leap = parts.tm_sec / 60;
  parts.tm_sec -= leap;
  std::tm normal = parts;
  const std::time_t seconds = utc ? ::timegm(&normal) : ::mktime(&normal);
  if (!same_day(parts, normal)) return std::nullopt;
  return seconds + leap;
}

// "2024", "24" or nothing, as std::tm counts years.
std::optional<int> take_year(std::string_view& text, std::size_t digits, std::int64_t now) {
  if (digits == 0) {
    const std::time_t seconds = now;
    std::tm today{};
    if (::localtime_r(&seconds, &today) == nullptr) return std::nullopt;
    return today.tm_year;
  }
  const std::optional<int> year = take_number(text, digits);
  if (!year || digits == 4) return year ? std::optional(*year - 1900) : year;
  return *year < 69 ? *year + 100 : *year;
}

}  // namespace

std::optional<nfs::client::Time> parse_date(std::string_view text) {
  if (take(text, "@")) return text.empty() ? std::nullopt : parse_epoch(text);
  std::tm parts{};
  nfs::client::Time time;
  std::optional<int> offset;
  if (!take_day(text, parts)) return std::nullopt;
  if (take(text, "T") || (text.size() > 1 && text[1] != 'U' && take(text, " "))) {
    if (!take_clock(text, parts, time.nanoseconds) || !take_offset(text, offset))
      return std::nullopt;
  }
  const bool utc = offset || take(text, "Z") || take(text, " UTC");
  if (!text.empty()) return std::nullopt;
  const std::optional<std::int64_t> seconds = seconds_of(parts, utc);
  if (!seconds) return std::nullopt;
  time.seconds = *seconds - offset.value_or(0);
  return time;
}

nfs::client::Time time_of(const timespec& time) {
  return {time.tv_sec, static_cast<std::uint32_t>(time.tv_nsec)};
}

std::optional<nfs::client::Time> parse_stamp(std::string_view text, std::int64_t now) {
  constexpr std::size_t kDayAndTime = 8;  // MMDDhhmm
  const std::size_t digits = std::min(text.find('.'), text.size());
  if (digits != kDayAndTime && digits != kDayAndTime + 2 && digits != kDayAndTime + 4)
    return std::nullopt;
  std::tm parts{};
  const std::optional<int> year = take_year(text, digits - kDayAndTime, now);
  const std::optional<int> month = take_number(text, 2);
  const std::optional<int> day = take_number(text, 2);
  const std::optional<int> hour = take_number(text, 2);
  const std::optional<int> minute = take_number(text, 2);
  const std::optional<int> second = take(text, ".") ? take_number(text, 2) : 0;
  if (!year || !month || !day || !hour || !minute || !second || !text.empty()) return std::nullopt;
  parts.tm_year = *year;
  parts.tm_mon = *month - 1;
  parts.tm_mday = *day;
  parts.tm_hour = *hour;
  parts.tm_min = *minute;
  parts.tm_sec = *second;
  const std::optional<std::int64_t> seconds = seconds_of(parts, false);
  if (!seconds) return std::nullopt;
  return nfs::client::Time{*seconds, 0};
}

}  // namespace stag::cli
