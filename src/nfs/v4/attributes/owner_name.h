// Owners and groups as texts (RFC 8881 5.9): numbers in decimal digits.
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stag::nfs::nfs4 {

// Of one number, without memory of its own.
class OwnerDigits {
 public:
  explicit OwnerDigits(std::uint32_t id) {
    const auto written = std::to_chars(digits_.begin(), digits_.end(), id);
    size_ = static_cast<std::size_t>(written.ptr - digits_.data());
  }
  std::string_view text() const { return {digits_.data(), size_}; }

 private:
  std::array<char, 10> digits_;
  std::size_t size_;
};

std::string owner_name(std::uint32_t id);
// nullopt unless it is the number of a user or group.
std::optional<std::uint32_t> owner_id(std::string_view name);

}  // namespace stag::nfs::nfs4
