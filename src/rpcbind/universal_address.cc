#include "rpcbind/universal_address.h"

#include <charconv>
#include <cstdint>

namespace stag::rpcbind {
namespace {

constexpr int kGroups = 8;  // of 16 bits in an IPv6 address

// A decimal number from 0 to 255 without leading zeros.
std::optional<std::uint32_t> octet(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || value > 255 || (text.size() > 1 && text.front() == '0')) return std::nullopt;
  return value;
}

// Removes the number behind the last dot from `text` and returns it.
std::optional<std::uint32_t> take_last_octet(std::string_view& text) {
  const std::size_t dot = text.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto value = octet(text.substr(dot + 1));
  text = text.substr(0, dot);
  return value;
}

bool is_ipv4_address(std::string_view text) {
  for (int i = 0; i < 3; ++i)
    if (!take_last_octet(text)) return false;
  return octet(text).has_value();
}

// How many groups of 16 bits `text` ("1:2:3", "1:192.0.2.7", "") stands for; negative: none.
int groups_in(std::string_view text) {
  int groups = 0;
  while (!text.empty()) {
    const std::size_t colon = std::min(text.find(':'), text.size());
    const std::string_view group = text.substr(0, colon);
    const bool last = colon == text.size();
    if (last && is_ipv4_address(group)) return groups + 2;
    const bool hex = group.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
    if (group.empty() || group.size() > 4 || !hex) return -1;
    ++groups;
    if (last) break;
    text.remove_prefix(colon + 1);
    if (text.empty()) return -1;
  }
  return groups;
}

// RFC 4291 section 2.2: "::" stands for one or more groups of zeros, once.
bool is_ipv6_address(std::string_view text) {
  const std::size_t gap = text.find("::");
  if (gap == std::string_view::npos) return groups_in(text) == kGroups;
  const std::string_view front = text.substr(0, gap);
  // Only the very end may be IPv4.
  if (front.find('.') != std::string_view::npos) return false;
  const int before = groups_in(front);
  const int after = groups_in(text.substr(gap + 2));
  return before >= 0 && after >= 0 && before + after < kGroups;
}

}  // namespace

bool is_ipv6(std::string_view host) {
  return host.empty() || host.find(':') != std::string_view::npos;
}

std::string to_universal(const Address& address) {
  std::string text = address.host.empty() ? "::" : address.host.substr(0, address.host.find('%'));
  text += "." + std::to_string(address.port >> 8) + "." + std::to_string(address.port & 255);
  return text;
}

std::optional<Address> from_universal(std::string_view text) {
  const auto low = take_last_octet(text);
  const auto high = take_last_octet(text);
  if (!low || !high) return std::nullopt;
  if (!is_ipv4_address(text) && !is_ipv6_address(text)) return std::nullopt;
  return Address{std::string(text), static_cast<std::uint16_t>(*high << 8 | *low)};
}

}  // namespace stag::rpcbind
