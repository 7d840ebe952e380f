#include "cli/support/escape.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>
#include <system_error>

namespace stag::cli {
namespace {

struct CodePoint {
  char32_t value = 0;
  std::size_t length = 1;  // bytes
};

// Of 2, 3 and 4 bytes: how many bits the first one has, and from which code point on it is allowed
// (RFC 3629 section 3).
struct Form {
  unsigned char mask, lead;
  char32_t least;
};
constexpr std::array<Form, 3> kForms{
    {{0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}}};

// The code point at the beginning of `bytes`; nullopt when they are no UTF-8.
std::optional<CodePoint> first_code_point(std::string_view bytes) {
  const auto lead = static_cast<unsigned char>(bytes.front());
  if (lead < 0x80) return CodePoint{lead, 1};
  for (std::size_t i = 0; i < kForms.size(); ++i) {
    const Form& form = kForms[i];
    if ((lead & form.mask) != form.lead) continue;
    CodePoint point{static_cast<char32_t>(lead & ~form.mask), i + 2};
    if (bytes.size() < point.length) return std::nullopt;
    for (const char each : bytes.substr(1, point.length - 1)) {
      if ((each & 0xc0) != 0x80) return std::nullopt;
      point.value = (point.value << 6) | (each & 0x3f);
    }
    const bool surrogate = point.value >= 0xd800 && point.value < 0xe000;
    if (point.value < form.least || point.value > 0x10ffff || surrogate) return std::nullopt;
    return point;
  }
  return std::nullopt;
}

bool acts_on_terminals(char32_t value) {
  constexpr std::u32string_view kMarks = U"\u061c\u200e\u200f\u2028\u2029";
  return value < 0x20 || (value >= 0x7f && value < 0xa0) || kMarks.find(value) != kMarks.npos ||
         (value >= 0x202a && value <= 0x202e) || (value >= 0x2066 && value <= 0x2069);
}

std::string percent_encoded(char byte) {
  return fmt::format("%{:02X}", static_cast<unsigned char>(byte));
}

}  // namespace

std::string escaped(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const std::optional<CodePoint> point = first_code_point(bytes);
    const std::string_view taken = bytes.substr(0, point ? point->length : 1);
    bytes.remove_prefix(taken.size());
    if (point && !acts_on_terminals(point->value))
      text += taken;
    else
      for (const char each : taken)
        text += fmt::format("\\{:03o}", static_cast<unsigned char>(each));
  }
  return text;
}

bool is_printable(std::string_view bytes) {
  return escaped(bytes) == bytes;
}

bool is_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::optional<CodePoint> point = first_code_point(bytes);
    if (!point) return false;
    bytes.remove_prefix(point->length);
  }
  return true;
}

std::string percent_encoded(std::string_view bytes) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
  std::string text;
  for (const char each : bytes) {
    if (kPlain.find(each) != kPlain.npos)
      text.push_back(each);
    else
      text += percent_encoded(each);
  }
  return text;
}

std::string as_utf8(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const std::optional<CodePoint> point = first_code_point(bytes);
    const std::string_view taken = bytes.substr(0, point ? point->length : 1);
    bytes.remove_prefix(taken.size());
    if (point && point->value != '%')
      text += taken;
    else
      text += percent_encoded(taken.front());
  }
  return text;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      bytes.push_back(text[i]);
      continue;
    }
    const std::string_view digits = text.substr(i + 1, 2);
    const char* const end = digits.data() + digits.size();
    unsigned char byte = 0;
    const auto read = std::from_chars(digits.data(), end, byte, 16);
    if (digits.size() < 2 || read.ec != std::errc() || read.ptr != end) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
    i += digits.size();
  }
  return bytes;
}

}  // namespace stag::cli
