#include "nfs/acl/owner_name.h"

#include <charconv>

#include "vfs/types.h"

namespace stag::nfs::nfs4 {

std::string owner_name(std::uint32_t id) {
  return std::to_string(id);
}

std::optional<std::uint32_t> owner_id(std::string_view name) {
  std::uint32_t id = 0;
  const char* const end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data(), end, id);
  if (parsed.ec != std::errc() || parsed.ptr != end || id == vfs::kNoId) return std::nullopt;
  return id;
}

}  // namespace stag::nfs::nfs4
