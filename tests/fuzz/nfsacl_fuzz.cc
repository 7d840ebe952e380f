// The decoders of NFSACL, and what a server makes of a list it is sent. A list that a store takes
// has every property a list must have.
#include <array>

#include "nfs/ulb/nfsacl.h"
#include "procedures.h"
#include "vfs/acl.h"

using namespace stag;
using namespace stag::nfs::nfsacl;

namespace {

void try_list(const std::vector<aclent>& list) {
  std::vector<vfs::AclEntry> entries;
  for (const aclent& entry : nfs::ulb::received_acl(list)) {
    if (entry.type > ACL_OTHER_OBJ) return;
    entries.push_back({static_cast<vfs::AclEntry::Tag>(entry.type), entry.id, entry.perm});
  }
  const auto acl = vfs::Acl::from(entries);
  if (!acl || acl->empty()) return;
  STAG_CHECK(acl->mode() <= 0777 && acl->entries().size() == entries.size());
  STAG_CHECK(vfs::Acl::from({acl->entries().begin(), acl->entries().end()}) == acl);
  STAG_CHECK(acl->inherited(0640).mode() == (acl->mode() & 0640));
}

template <class P>
void try_with_lists(const Buffer& message) {
  fuzz::try_procedure<P>(message);
  xdr::Decoder arguments(message);
  typename P::Args args{};
  if (!P::decode_args(arguments, args)) return;
  if constexpr (requires { args.acls; }) {
    try_list(args.acls.aclents);
    try_list(args.acls.dfaclents);
  }
}

using fuzz::Try;
constexpr std::array<Try, 6> kTries{
    try_with_lists<ACLPROC2_GETACL>,  try_with_lists<ACLPROC2_SETACL>,
    try_with_lists<ACLPROC2_GETATTR>, try_with_lists<ACLPROC2_ACCESS>,
    try_with_lists<ACLPROC3_GETACL>,  try_with_lists<ACLPROC3_SETACL>};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::try_one_of(kTries, data, size);
  return 0;
}
