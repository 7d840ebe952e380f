// What comes from rpcbind: the generated decoders, universal addresses, and the record of an
// earlier run. What decodes encodes again to a value that decodes.
#include <array>

#include "procedures.h"
#include "rpcbind/registrar.h"
#include "rpcbind/rpcbind.h"
#include "rpcbind/universal_address.h"

using namespace stag;

namespace {

void try_address(const Buffer& message) {
  const std::string_view text = text_of(message.bytes());
  const std::optional<Address> address = rpcbind::from_universal(text);
  if (address) STAG_CHECK(rpcbind::from_universal(rpcbind::to_universal(*address)) == address);
}

void try_record(const Buffer& message) {
  const auto all = rpcbind::from_text(text_of(message.bytes()));
  const auto again = rpcbind::from_text(rpcbind::to_text(all));
  STAG_CHECK(again.size() == all.size());
  for (std::size_t i = 0; i < all.size(); ++i) STAG_CHECK(rpcbind::same(all[i], again[i]));
}

using fuzz::Try;
using fuzz::try_procedure;
using namespace stag::rpcbind;
constexpr std::array<Try, 8> kTries{try_procedure<PMAPPROC_GETPORT>,
                                    try_procedure<PMAPPROC_DUMP>,
                                    try_procedure<RPCBPROC_SET>,
                                    try_procedure<RPCBPROC_GETADDR>,
                                    try_procedure<RPCB3PROC_UNSET>,
                                    try_procedure<RPCBPROC_DUMP>,
                                    try_address,
                                    try_record};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::try_one_of(kTries, data, size);
  return 0;
}
