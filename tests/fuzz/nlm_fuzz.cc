// The generated decoders of NLM and NSM: any arguments and results. What decodes encodes again to a
// value that decodes.
#include <array>

#include "nfs/proto/nlm.h"
#include "nfs/proto/nsm.h"
#include "procedures.h"

using namespace stag;

namespace {

using fuzz::Try;
using fuzz::try_procedure;
using namespace stag::nfs::nlm;
using namespace stag::nfs::nsm;
// One of each pair of arguments and results; the messages share them with the calls.
constexpr std::array<Try, 21> kTries{try_procedure<NLM_TEST>,
                                     try_procedure<NLM_LOCK>,
                                     try_procedure<NLM_CANCEL>,
                                     try_procedure<NLM_UNLOCK>,
                                     try_procedure<NLM_TEST_RES>,
                                     try_procedure<NLM_LOCK_RES>,
                                     try_procedure<NLM3_SHARE>,
                                     try_procedure<NLM3_FREE_ALL>,
                                     try_procedure<NLMPROC4_TEST>,
                                     try_procedure<NLMPROC4_LOCK>,
                                     try_procedure<NLMPROC4_CANCEL>,
                                     try_procedure<NLMPROC4_UNLOCK>,
                                     try_procedure<NLMPROC4_TEST_RES>,
                                     try_procedure<NLMPROC4_LOCK_RES>,
                                     try_procedure<NLMPROC4_SHARE>,
                                     try_procedure<SM_STAT>,
                                     try_procedure<SM_MON>,
                                     try_procedure<SM_UNMON>,
                                     try_procedure<SM_UNMON_ALL>,
                                     try_procedure<SM_SIMU_CRASH>,
                                     try_procedure<SM_NOTIFY>};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::try_one_of(kTries, data, size);
  return 0;
}
