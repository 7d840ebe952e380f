// Users as people name them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace stag::cli {

// A user or group by its number. nullopt: it is none, or the one that chown(2) takes for "leave
// it".
std::optional<std::uint32_t> parse_id(const std::string& text);

// By its name on this machine, or by its number. Asks the name service, which may block.
std::optional<std::uint32_t> user_id(const std::string& name);

}  // namespace stag::cli
