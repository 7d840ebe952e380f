#include "cli/support/user_id.h"

#include <pwd.h>

#include <charconv>

namespace stag::cli {

std::optional<std::uint32_t> parse_id(const std::string& text) {
  constexpr std::uint32_t kNoId = 0xffffffff;
  std::uint32_t value = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end || value == kNoId) return std::nullopt;
  return value;
}

std::optional<std::uint32_t> user_id(const std::string& name) {
  const passwd* const known = name.empty() ? nullptr : ::getpwnam(name.c_str());
  return known != nullptr ? std::optional<std::uint32_t>(known->pw_uid) : parse_id(name);
}

}  // namespace stag::cli
