// The generated decoders of NFSv3 and MOUNT: any arguments and results. What decodes encodes again
// to a value that decodes.
#include <array>

#include "nfs/proto/mount3.h"
#include "nfs/proto/nfs3.h"
#include "procedures.h"

using namespace stag;

namespace {

using fuzz::Try;
using fuzz::try_procedure;
using namespace stag::nfs::v3;
constexpr std::array<Try, 23> kTries{try_procedure<NFSPROC3_NULL>,
                                     try_procedure<NFSPROC3_GETATTR>,
                                     try_procedure<NFSPROC3_SETATTR>,
                                     try_procedure<NFSPROC3_LOOKUP>,
                                     try_procedure<NFSPROC3_ACCESS>,
                                     try_procedure<NFSPROC3_READLINK>,
                                     try_procedure<NFSPROC3_READ>,
                                     try_procedure<NFSPROC3_WRITE>,
                                     try_procedure<NFSPROC3_CREATE>,
                                     try_procedure<NFSPROC3_MKDIR>,
                                     try_procedure<NFSPROC3_SYMLINK>,
                                     try_procedure<NFSPROC3_MKNOD>,
                                     try_procedure<NFSPROC3_REMOVE>,
                                     try_procedure<NFSPROC3_RMDIR>,
                                     try_procedure<NFSPROC3_RENAME>,
                                     try_procedure<NFSPROC3_LINK>,
                                     try_procedure<NFSPROC3_READDIR>,
                                     try_procedure<NFSPROC3_READDIRPLUS>,
                                     try_procedure<NFSPROC3_FSSTAT>,
                                     try_procedure<NFSPROC3_FSINFO>,
                                     try_procedure<NFSPROC3_PATHCONF>,
                                     try_procedure<NFSPROC3_COMMIT>,
                                     try_procedure<stag::nfs::mount3::MOUNTPROC3_MNT>};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::try_one_of(kTries, data, size);
  return 0;
}
