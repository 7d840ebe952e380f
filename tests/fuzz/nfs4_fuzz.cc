// COMPOUND: the generated decoders of arguments and results, and the server's own list of
// operations, which reads one at a time and stops at the first that is malformed.
#include <array>

#include "nfs/proto/nfs4.h"
#include "nfs/v4/operation_list.h"
#include "procedures.h"

using namespace stag;

namespace {

void try_list(const Buffer& message) {
  xdr::Decoder decoder(message);
  nfs::nfs4::OperationList list;
  if (!list.decode(decoder, 64)) return;
  for (const auto& entry : list.entries())
    STAG_CHECK(entry.refusal != nfs::v4::NFS4_OK || entry.arguments != nullptr);
}

void try_attributes(const Buffer& message) {
  xdr::Decoder decoder(message);
  nfs::v4::fattr4 attributes;
  if (decode(decoder, attributes)) (void)nfs::nfs4::decode_attributes(attributes);
}

constexpr std::array<fuzz::Try, 4> kTries{fuzz::try_procedure<nfs::v4::NFSPROC4_COMPOUND>,
                                          fuzz::try_procedure<nfs::v4::CB_COMPOUND>, try_list,
                                          try_attributes};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::try_one_of(kTries, data, size);
  return 0;
}
