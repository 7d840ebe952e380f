#include "base/size.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace stag {
namespace {

// What the letters behind a number stand for; nullopt: nothing.
std::optional<std::uint64_t> unit_of(std::string_view text) {
  constexpr std::string_view kLetters = "KMGTP";
  const auto at = [text](std::size_t i) {
    return i < text.size() ? std::toupper(static_cast<unsigned char>(text[i])) : 0;
  };
  if (text.empty() || (text.size() == 1 && at(0) == 'B')) return 1;
  const std::size_t power = kLetters.find(static_cast<char>(at(0)));
  if (power == kLetters.npos) return std::nullopt;
  const bool binary = text.size() == 1 || (text.size() == 3 && at(1) == 'I' && at(2) == 'B');
  const bool decimal = text.size() == 2 && at(1) == 'B';
  if (!binary && !decimal) return std::nullopt;
  std::uint64_t unit = 1;
  for (std::size_t i = 0; i <= power; ++i) unit *= binary ? 1024 : 1000;
  return unit;
}

}  // namespace

std::optional<std::uint64_t> parse_size(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::optional<std::uint64_t> unit = unit_of(text.substr(digits));
  const char* const end = text.data() + digits;
  std::uint64_t whole = 0;
  const auto parsed = std::from_chars(text.data(), end, whole);
  if (!unit || parsed.ec != std::errc()) return std::nullopt;
  if (parsed.ptr == end) {
    if (whole > UINT64_MAX / *unit) return std::nullopt;
    return whole * *unit;
  }
  double value = 0;
  const auto real = std::from_chars(text.data(), end, value);
  if (real.ec != std::errc() || real.ptr != end) return std::nullopt;
  constexpr double kEnd = 18446744073709551616.0;  // 2^64
  const double bytes = value * static_cast<double>(*unit);
  if (!(bytes < kEnd)) return std::nullopt;
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace stag
