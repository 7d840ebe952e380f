#include "base/network.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>

namespace stag {

namespace {

constexpr std::uint64_t kMapped = 0xffffULL << 32;  // ::ffff:0:0/96
constexpr unsigned kV4Prefix = 96;

// Digits of `base` only, at least one and at most `most`.
std::optional<std::uint32_t> number(std::string_view text, int base, std::size_t most) {
  std::uint32_t value = 0;
  if (text.size() > most) return std::nullopt;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value, base);
  if (error != std::errc() || end != last) return std::nullopt;
  return value;
}

// Four decimal numbers; a leading zero, which some read as octal, is none.
std::optional<std::uint32_t> parse_v4(std::string_view text) {
  std::uint32_t address = 0;
  for (int i = 0; i < 4; ++i) {
    const std::size_t end = i == 3 ? text.size() : text.find('.');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view part = text.substr(0, end);
    const auto value = number(part, 10, 3);
    if (!value || *value > 255 || (part.size() > 1 && part.front() == '0')) return std::nullopt;
    address = address << 8 | *value;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return address;
}

// The text form of RFC 4291 2.2, read group by group.
class V6 {
 public:
  static std::optional<IpAddress> parse(std::string_view text) {
    V6 v6;
    if (!v6.read(text)) return std::nullopt;
    if (v6.gap_) {
      const auto tail = v6.groups_.begin() + static_cast<std::ptrdiff_t>(*v6.gap_);
      std::rotate(tail, v6.groups_.begin() + static_cast<std::ptrdiff_t>(v6.used_),
                  v6.groups_.end());
    }
    IpAddress address;
    for (std::size_t i = 0; i < 8; ++i) {
      std::uint64_t& half = i < 4 ? address.high : address.low;
      half = half << 16 | v6.groups_[i];
    }
    return address;
  }

 private:
  bool read(std::string_view text) {
    if (text.starts_with("::")) {
      gap_ = 0;
      text.remove_prefix(2);
    }
    while (!text.empty()) {
      const std::size_t end = std::min(text.find(':'), text.size());
      if (!group(text.substr(0, end), end == text.size())) return false;
      text.remove_prefix(end);
      if (text.empty()) break;
      text.remove_prefix(1);
      if (text.empty()) return false;
      if (text.front() != ':') continue;
      if (gap_) return false;
      gap_ = used_;
      text.remove_prefix(1);
    }
    return gap_ ? used_ < 8 : used_ == 8;
  }

  bool group(std::string_view text, bool last) {
    if (last && text.find('.') != std::string_view::npos) {
      const auto v4 = parse_v4(text);
      if (!v4 || used_ > 6) return false;
      groups_[used_++] = static_cast<std::uint16_t>(*v4 >> 16);
      groups_[used_++] = static_cast<std::uint16_t>(*v4);
      return true;
    }
    const auto value = number(text, 16, 4);
    if (!value || used_ == 8) return false;
    groups_[used_++] = static_cast<std::uint16_t>(*value);
    return true;
  }

  std::array<std::uint16_t, 8> groups_{};
  std::size_t used_ = 0;
  std::optional<std::size_t> gap_;  // how many groups stand before "::"
};

// The bits of a mask like 255.255.240.0.
std::optional<unsigned> prefix_of_mask(std::uint32_t mask) {
  const int ones = std::countl_one(mask);
  if (ones + std::countr_zero(mask) < 32) return std::nullopt;
  return static_cast<unsigned>(ones);
}

std::uint64_t leading_ones(unsigned count) {
  return count == 0 ? 0 : ~std::uint64_t{0} << (64 - count);
}

}  // namespace

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
  text = text.substr(0, text.find('%'));
  if (text.find(':') != std::string_view::npos) return V6::parse(text);
  const auto v4 = parse_v4(text);
  if (!v4) return std::nullopt;
  return IpAddress{0, kMapped | *v4};
}

IpNetwork::IpNetwork(const IpAddress& address, unsigned prefix)
    : mask_{leading_ones(std::min(prefix, 64u)), leading_ones(prefix > 64 ? prefix - 64 : 0)},
      prefix_(prefix) {
  first_ = {address.high & mask_.high, address.low & mask_.low};
}

std::optional<IpNetwork> IpNetwork::parse(std::string_view text) {
  if (text.find('%') != std::string_view::npos) return std::nullopt;  // an interface is no network
  const std::size_t slash = std::min(text.find('/'), text.size());
  const auto address = IpAddress::parse(text.substr(0, slash));
  if (!address) return std::nullopt;
  const unsigned base = address->is_v4() ? kV4Prefix : 0;
  if (slash == text.size()) return IpNetwork(*address, 128);
  const std::string_view length = text.substr(slash + 1);
  if (const auto bits = number(length, 10, 3)) {
    if (base + *bits > 128) return std::nullopt;
    return IpNetwork(*address, base + *bits);
  }
  const auto mask = address->is_v4() ? parse_v4(length) : std::nullopt;
  const auto bits = mask ? prefix_of_mask(*mask) : std::nullopt;
  if (!bits) return std::nullopt;
  return IpNetwork(*address, kV4Prefix + *bits);
}

bool is_allowed(std::span<const IpNetwork> networks, std::string_view host) {
  if (networks.empty()) return true;
  const auto address = IpAddress::parse(host);
  return address && std::any_of(networks.begin(), networks.end(),
                                [&](const IpNetwork& each) { return each.contains(*address); });
}

std::uint64_t client_at(std::string_view host) {
  const auto address = IpAddress::parse(host);
  return address ? address->client() : 0;
}

}  // namespace stag
