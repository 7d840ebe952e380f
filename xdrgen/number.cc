#include "xdrgen/number.h"

#include <fmt/format.h>

#include <charconv>

namespace xdrgen {

ast::Integer parse_number(const Token& token) {
  std::string_view digits = token.text;
  const bool negative = digits.starts_with('-');
  if (negative) digits.remove_prefix(1);
  int base = 10;
  if (digits.starts_with("0x") || digits.starts_with("0X")) {
    base = 16;
    digits.remove_prefix(2);
  } else if (digits.size() > 1 && digits[0] == '0') {
    base = 8;
  }
  std::uint64_t magnitude = 0;
  const char* end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, magnitude, base);
  const bool too_large =
      error == std::errc::result_out_of_range || (negative && magnitude > std::uint64_t{1} << 63);
  if (too_large) complain(token.where, fmt::format("{} does not fit 64 bits", token.text));
  if (error != std::errc{} || stopped != end)
    complain(token.where, fmt::format("'{}' is not a number", token.text));
  const auto value = static_cast<ast::Integer>(magnitude);
  return negative ? -value : value;
}

}  // namespace xdrgen
