#include "vfs/name.h"

namespace stag::vfs {

std::optional<Status> fault_of_name(std::string_view name, std::size_t max_name) {
  if (name.empty()) return Status::Access;
  if (name.find('/') != name.npos || name.find('\0') != name.npos) return Status::Access;
  if (name.size() > max_name) return Status::NameTooLong;
  return std::nullopt;
}

std::optional<Status> fault_of_new_name(std::string_view name, std::size_t max_name) {
  if (is_dot_or_dot_dot(name)) return Status::Exists;
  return fault_of_name(name, max_name);
}

std::optional<Status> fault_of_old_name(std::string_view name, std::size_t max_name) {
  if (is_dot_or_dot_dot(name)) return Status::Invalid;
  return fault_of_name(name, max_name);
}

std::optional<Status> fault_of_xattr_name(std::string_view name) {
  constexpr std::size_t kMaxXattrName = 250;
  if (name.empty() || name.find('\0') != name.npos) return Status::Invalid;
  if (name.size() > kMaxXattrName) return Status::NameTooLong;
  return std::nullopt;
}

}  // namespace stag::vfs
