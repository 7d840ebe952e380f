// Arguments and results without the types of the protocol in between: what is decoded allocates
// nothing, and results are encoded from what the store said.
#pragma once

#include "nfs/v4/compound/compound.h"

namespace stag::nfs::nfs4 {

// Refers to the Call's message.
struct PutfhArguments {
  Bytes object;
};
inline bool decode(xdr::Decoder& decoder, PutfhArguments& to) {
  return decoder.inline_opaque(to.object, v4::NFS4_FHSIZE);
}

// In nearly every COMPOUND, so its words are read in one piece. A session ID is two of them.
struct SequenceArguments : v4::SEQUENCE4args {};
inline bool decode(xdr::Decoder& decoder, SequenceArguments& to) {
  std::uint64_t high = 0, low = 0;
  std::uint32_t keeps = 0;
  if (!decoder.integers(high, low, to.sa_sequenceid, to.sa_slotid, to.sa_highest_slotid, keeps))
    return false;
  if (keeps > 1) return decoder.fail(xdr::Error::BadBoolean);
  store_be(to.sa_sessionid.data(), high);
  store_be(to.sa_sessionid.data() + 8, low);
  to.sa_cachethis = keeps == 1;
  return true;
}

struct GetattrArguments {
  AttributeSet asked;
};
inline bool decode(xdr::Decoder& decoder, GetattrArguments& to) {
  return to.asked.decode(decoder);
}

// Results of READDIR: the entries are encoded when they are found.
struct ReaddirResults {
  v4::nfsstat4 status = v4::NFS4_OK;
  vfs::Verifier verifier{};
  xdr::Stream entries;  // the list, with its end
  bool eof = false;
};
void encode(xdr::Encoder& encoder, const ReaddirResults& results);

}  // namespace stag::nfs::nfs4
