// Owners and groups as texts (RFC 8881 5.9): numbers in decimal digits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stag::nfs::nfs4 {

std::string owner_name(std::uint32_t id);
// nullopt unless it is the number of a user or group.
std::optional<std::uint32_t> owner_id(std::string_view name);

}  // namespace stag::nfs::nfs4
