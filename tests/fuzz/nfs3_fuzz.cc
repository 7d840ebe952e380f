// The generated decoders of NFSv3 and MOUNT: any arguments and results. What decodes encodes again
// to a value that decodes.
#include <array>

#include "input.h"
#include "nfs/proto/mount3.h"
#include "nfs/proto/nfs3.h"

using namespace stag;

namespace {

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
  }
  xdr::Decoder results(message);
  typename P::Results result{};
  static_cast<void>(P::decode_results(results, result));
}

using Try = void (*)(const Buffer&);
using namespace stag::nfs::v3;
constexpr std::array<Try, 22> kTries{
    try_procedure<NFSPROC3_NULL>,     try_procedure<NFSPROC3_GETATTR>,
    try_procedure<NFSPROC3_SETATTR>,  try_procedure<NFSPROC3_LOOKUP>,
    try_procedure<NFSPROC3_ACCESS>,   try_procedure<NFSPROC3_READLINK>,
    try_procedure<NFSPROC3_READ>,     try_procedure<NFSPROC3_WRITE>,
    try_procedure<NFSPROC3_CREATE>,   try_procedure<NFSPROC3_MKDIR>,
    try_procedure<NFSPROC3_SYMLINK>,  try_procedure<NFSPROC3_MKNOD>,
    try_procedure<NFSPROC3_REMOVE>,   try_procedure<NFSPROC3_RMDIR>,
    try_procedure<NFSPROC3_RENAME>,   try_procedure<NFSPROC3_LINK>,
    try_procedure<NFSPROC3_READDIR>,  try_procedure<NFSPROC3_READDIRPLUS>,
    try_procedure<NFSPROC3_FSSTAT>,   try_procedure<NFSPROC3_FSINFO>,
    try_procedure<NFSPROC3_PATHCONF>, try_procedure<NFSPROC3_COMMIT>};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::uint8_t choice = input.octet();
  const Buffer message = Buffer::copy_of(input.rest());
  if (choice < kTries.size())
    kTries[choice](message);
  else
    try_procedure<nfs::mount3::MOUNTPROC3_MNT>(message);
  return 0;
}
