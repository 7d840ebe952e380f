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
  explicit OwnerDigits(std::uint32_t id)
      : end_(std::to_chars(digits_.begin(), digits_.end(), id).ptr) {}
  std::string_view text() const {
    return {digits_.data(), static_cast<std::size_t>(end_ - digits_.data())};
  }

 private:
  std::array<char, 10> digits_;
  const char* end_;
};

std::string owner_name(std::uint32_t id);
// nullopt unless it is the number of a user or group.
std::optional<std::uint32_t> owner_id(std::string_view name);

}  // namespace stag::nfs::nfs4
