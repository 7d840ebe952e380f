#include "nfs/client/acl.h"

#include <string_view>

namespace stag::nfs::client {
namespace {

std::string_view name_of_tag(std::uint32_t tag) {
  switch (tag) {
    case AclEntry::kUserObject:
    case AclEntry::kUser:
      return "user";
    case AclEntry::kGroupObject:
    case AclEntry::kGroup:
      return "group";
    case AclEntry::kMask:
      return "mask";
    case AclEntry::kOther:
      return "other";
    default:
      return "unknown";
  }
}

}  // namespace

std::string to_string(const AclEntry& entry) {
  std::string text(name_of_tag(entry.tag));
  const bool named = entry.tag == AclEntry::kUser || entry.tag == AclEntry::kGroup;
  text += ':' + (named ? std::to_string(entry.id) : std::string()) + ':';
  constexpr std::string_view kLetters = "rwx";
  for (std::uint32_t i = 0; i < 3; ++i)
    text += (entry.permissions & 4u >> i) != 0 ? kLetters[i] : '-';
  return text;
}

bool means_no_acls(const Error& error) {
  if (error.is(Status::NotSupported)) return true;
  if (error.kind != Error::Kind::Call || error.call.kind != rpc::CallError::Kind::Answered)
    return false;
  using oncrpc::AcceptStat;
  const AcceptStat accept = error.call.status.accept;
  return accept == AcceptStat::PROG_UNAVAIL || accept == AcceptStat::PROG_MISMATCH ||
         accept == AcceptStat::PROC_UNAVAIL;
}

}  // namespace stag::nfs::client
