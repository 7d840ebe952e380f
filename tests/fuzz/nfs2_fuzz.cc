// The generated decoders of NFSv2 and of MOUNT versions 1 and 2: any arguments and results. What
// decodes encodes again to a value that decodes.
#include <array>

#include "input.h"
#include "nfs/proto/mount3.h"
#include "nfs/proto/nfs2.h"

using namespace stag;

namespace {

template <class T, class Decode, class Encode>
void repeat(const Buffer& message, Decode decode, Encode encode) {
  xdr::Decoder decoder(message);
  T value{};
  if (!decode(decoder, value)) return;
  xdr::Encoder encoder;
  encode(encoder, value);
  xdr::Stream stream = std::move(encoder).finish();
  CHECK(stream.ok());
  xdr::Decoder second(stream.rope().flatten());
  T again{};
  CHECK(decode(second, again) && again == value);
}

template <class P>
void try_procedure(const Buffer& message) {
  repeat<typename P::Args>(message, P::decode_args, P::encode_args);
  repeat<typename P::Results>(message, P::decode_results, P::encode_results);
}

using Try = void (*)(const Buffer&);
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
  fuzz::Input input(data, size);
  const std::uint8_t choice = input.octet();
  const Buffer message = Buffer::copy_of(input.rest());
  kTries[choice % kTries.size()](message);
  return 0;
}
