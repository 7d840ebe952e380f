#include "nfs/client/acl.h"

#include <span>
#include <string_view>
#include <utility>

#include "nfs/proto/nfs4.h"

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

std::string to_string(const Nfs4Ace& entry) {
  // The letters of nfs4_acl(5), in the order of nfs4_getfacl(1).
  using Letters = std::pair<std::uint32_t, char>;
  constexpr std::string_view kTypes = "ADUL";
  constexpr Letters kFlags[] = {{v4::ACE4_FILE_INHERIT_ACE, 'f'},
                                {v4::ACE4_DIRECTORY_INHERIT_ACE, 'd'},
                                {v4::ACE4_NO_PROPAGATE_INHERIT_ACE, 'n'},
                                {v4::ACE4_INHERIT_ONLY_ACE, 'i'},
                                {v4::ACE4_SUCCESSFUL_ACCESS_ACE_FLAG, 'S'},
                                {v4::ACE4_FAILED_ACCESS_ACE_FLAG, 'F'},
                                {v4::ACE4_IDENTIFIER_GROUP, 'g'}};
  constexpr Letters kRights[] = {
      {v4::ACE4_READ_DATA, 'r'},        {v4::ACE4_WRITE_DATA, 'w'},
      {v4::ACE4_APPEND_DATA, 'a'},      {v4::ACE4_DELETE_CHILD, 'D'},
      {v4::ACE4_DELETE, 'd'},           {v4::ACE4_EXECUTE, 'x'},
      {v4::ACE4_READ_ATTRIBUTES, 't'},  {v4::ACE4_WRITE_ATTRIBUTES, 'T'},
      {v4::ACE4_READ_NAMED_ATTRS, 'n'}, {v4::ACE4_WRITE_NAMED_ATTRS, 'N'},
      {v4::ACE4_READ_ACL, 'c'},         {v4::ACE4_WRITE_ACL, 'C'},
      {v4::ACE4_WRITE_OWNER, 'o'},      {v4::ACE4_SYNCHRONIZE, 'y'}};
  const auto letters = [](std::span<const Letters> all, std::uint32_t bits) {
    std::string text;
    for (const auto& [bit, letter] : all)
      if ((bits & bit) != 0) text += letter;
    return text;
  };
  const char type = entry.type < kTypes.size() ? kTypes[entry.type] : '?';
  return std::string(1, type) + ':' + letters(kFlags, entry.flags) + ':' + entry.who + ':' +
         letters(kRights, entry.mask);
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
