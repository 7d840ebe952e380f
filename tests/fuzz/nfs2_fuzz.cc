// The generated decoders of NFSv2 and of MOUNT versions 1 and 2: any arguments and results. What
// decodes encodes again to a value that decodes.
#include <array>

#include "nfs/proto/mount3.h"
#include "nfs/proto/nfs2.h"
#include "procedures.h"

using namespace stag;

namespace {

using fuzz::Try;
using fuzz::try_procedure;
using namespace stag::nfs::v2;
using namespace stag::nfs::mount3;
constexpr std::array<Try, 19> kTries{
    try_procedure<NFSPROC_GETATTR>,    try_procedure<NFSPROC_SETATTR>,
    try_procedure<NFSPROC_LOOKUP>,     try_procedure<NFSPROC_READLINK>,
    try_procedure<NFSPROC_READ>,       try_procedure<NFSPROC_WRITE>,
    try_procedure<NFSPROC_CREATE>,     try_procedure<NFSPROC_REMOVE>,
    try_procedure<NFSPROC_RENAME>,     try_procedure<NFSPROC_LINK>,
    try_procedure<NFSPROC_SYMLINK>,    try_procedure<NFSPROC_MKDIR>,
    try_procedure<NFSPROC_RMDIR>,      try_procedure<NFSPROC_READDIR>,
    try_procedure<NFSPROC_STATFS>,     try_procedure<MOUNTPROC1_MNT>,
    try_procedure<MOUNTPROC1_DUMP>,    try_procedure<MOUNTPROC1_EXPORT>,
    try_procedure<MOUNTPROC2_PATHCONF>};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::try_one_of(kTries, data, size);
  return 0;
}
