// The decoders of NFSACL, and what a server makes of a list it is sent. A list that a store takes
// has every property a list must have.
#include <array>

#include "input.h"
#include "nfs/ulb/nfsacl.h"
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
  CHECK(acl->mode() <= 0777 && acl->entries().size() == entries.size());
  CHECK(vfs::Acl::from({acl->entries().begin(), acl->entries().end()}) == acl);
  CHECK(acl->inherited(0640).mode() == (acl->mode() & 0640));
}

template <class P>
void try_procedure(const Buffer& message) {
  xdr::Decoder arguments(message);
  typename P::Args args{};
  if (P::decode_args(arguments, args)) {
    xdr::Encoder encoder;
    P::encode_args(encoder, args);
    xdr::Stream stream = std::move(encoder).finish();
    CHECK(stream.ok());
    xdr::Decoder second(stream.rope().flatten());
    typename P::Args again{};
    CHECK(P::decode_args(second, again) && again == args);
    if constexpr (requires { args.acls; }) {
      try_list(args.acls.aclents);
      try_list(args.acls.dfaclents);
    }
  }
  xdr::Decoder results(message);
  typename P::Results result{};
  static_cast<void>(P::decode_results(results, result));
}

using Try = void (*)(const Buffer&);
constexpr std::array<Try, 6> kTries{
    try_procedure<ACLPROC2_GETACL>, try_procedure<ACLPROC2_SETACL>, try_procedure<ACLPROC2_GETATTR>,
    try_procedure<ACLPROC2_ACCESS>, try_procedure<ACLPROC3_GETACL>, try_procedure<ACLPROC3_SETACL>};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::uint8_t choice = input.octet();
  kTries[choice % kTries.size()](Buffer::copy_of(input.rest()));
  return 0;
}
