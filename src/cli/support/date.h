// Times as people write them.
#pragma once

#include <cstdint>
#include <ctime>
#include <limits>
#include <optional>
#include <string_view>

#include "nfs/client/protocol/types.h"

namespace stag::cli {

// "2024-05-01", "2024-05-01 12:30", "2024-05-01T12:30:00.5", each in the local time zone, or in UTC
// with "Z" or " UTC" behind; with a time of day also in a zone by its offset, "+02:00";
// "@1714566600.5", seconds since 1970. nullopt: it is none of these, or no such day or time.
std::optional<nfs::client::Time> parse_date(std::string_view text);

// "[[CC]YY]MMDDhhmm[.ss]" in the local time zone, as touch(1) has it: years 69 to 99 are those of
// the 20th century, and without a year it is that of `now`, in seconds since 1970.
std::optional<nfs::client::Time> parse_stamp(std::string_view text, std::int64_t now);

nfs::client::Time time_of(const timespec& time);

// Seconds since 1970 that objects can be given.
struct TimeRange {
  std::int64_t first = std::numeric_limits<std::int64_t>::min();
  std::int64_t last = std::numeric_limits<std::int64_t>::max();
};

}  // namespace stag::cli
