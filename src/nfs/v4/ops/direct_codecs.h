// Arguments and results without the types of the protocol in between: what is decoded allocates
// nothing, and results are encoded from what the store said.
#pragma once

#include "nfs/v4/compound/compound.h"

namespace stag::nfs::nfs4 {

struct GetattrArguments {
  AttributeSet asked;
};
inline bool decode(xdr::Decoder& decoder, GetattrArguments& to) {
  return to.asked.decode(decoder);
}

// Of READDIR: the entries are encoded when they are found.
struct ReaddirResults {
  v4::nfsstat4 status = v4::NFS4_OK;
  vfs::Verifier verifier{};
  xdr::Stream entries;  // the list, with its end
  bool eof = false;
};
void encode(xdr::Encoder& encoder, const ReaddirResults& results);

}  // namespace stag::nfs::nfs4
