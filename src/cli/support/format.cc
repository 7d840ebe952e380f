#include "cli/support/format.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <ctime>

#include "cli/support/escape.h"
#include "cli/support/journal.h"

namespace stag::cli {

std::string human_size(double bytes) {
  constexpr std::array<std::string_view, 6> kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, kUnits[unit]);
}

std::string short_size(std::uint64_t bytes) {
  constexpr std::string_view kUnits = "KMGTPE";
  if (bytes < 1024) return std::to_string(bytes);
  unsigned unit = 0;
  while (unit + 1 < kUnits.size() && bytes >> (10 * (unit + 2)) != 0) ++unit;
  const unsigned shift = 10 * (unit + 1);
  const std::uint64_t one = std::uint64_t{1} << shift;
  const std::uint64_t rest = bytes & (one - 1);
  std::uint64_t whole = bytes >> shift;
  const std::uint64_t tenths = (rest * 10 + one - 1) >> shift;
  if (whole < 9 || (whole == 9 && tenths < 10))
    return fmt::format("{}.{}{}", whole + tenths / 10, tenths % 10, kUnits[unit]);
  whole += rest != 0 ? 1 : 0;
  if (whole == 1024 && unit + 1 < kUnits.size()) return fmt::format("1.0{}", kUnits[unit + 1]);
  return fmt::format("{}{}", whole, kUnits[unit]);
}

std::string mode_text(const nfs::client::Attributes& attributes) {
  constexpr std::string_view kTypes = "?-dbclsp";
  constexpr std::string_view kBits = "rwxrwxrwx";
  const std::uint32_t mode = attributes.mode;
  const auto type = static_cast<std::size_t>(attributes.type);
  std::string text(1, type < kTypes.size() ? kTypes[type] : '?');
  for (std::size_t i = 0; i < kBits.size(); ++i)
    text.push_back((mode & (0400u >> i)) != 0 ? kBits[i] : '-');
  // The three high bits share places with the execute bits.
  const auto mark = [&](std::uint32_t bit, std::size_t place, char with, char without) {
    if ((mode & bit) != 0) text[place] = text[place] == 'x' ? with : without;
  };
  mark(04000, 3, 's', 'S');
  mark(02000, 6, 's', 'S');
  mark(01000, 9, 't', 'T');
  return text;
}

std::string_view type_name(nfs::client::FileType type) {
  constexpr std::array<std::string_view, 8> kNames{
      "unknown",          "file",    "directory", "block device",
      "character device", "symlink", "socket",    "fifo"};
  const auto index = static_cast<std::size_t>(type);
  return kNames[index < kNames.size() ? index : 0];
}

std::string time_text(const nfs::client::Time& time) {
  const std::time_t seconds = time.seconds;
  std::tm parts{};
  // The calendar ends before the numbers do.
  if (localtime_r(&seconds, &parts) == nullptr) return fmt::format("@{}", time.seconds);
  std::array<char, 32> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  return std::string(text.data(), length);
}

std::string shown(std::string_view name) {
  static const bool acted_upon = isatty(STDOUT_FILENO) == 1 || is_journal(STDOUT_FILENO);
  return acted_upon ? escaped(name) : std::string(name);
}

}  // namespace stag::cli
