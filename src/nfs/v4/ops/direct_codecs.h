// Arguments and results without the types of the protocol in between: what is decoded allocates
// nothing, and results are encoded from what the store said.
#pragma once

#include <concepts>

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

// A stateid, whose `other` is a word of eight bytes and one of four, and what follows it.
template <std::integral... Integers>
[[nodiscard]] bool decode_behind_stateid(xdr::Decoder& decoder, v4::stateid4& by, Integers&... to) {
  std::uint64_t high = 0;
  std::uint32_t low = 0;
  if (!decoder.integers(by.seqid, high, low, to...)) return false;
  store_be(by.other.data(), high);
  store_be(by.other.data() + 8, low);
  return true;
}
struct ReadArguments : v4::READ4args {};
inline bool decode(xdr::Decoder& decoder, ReadArguments& to) {
  return decode_behind_stateid(decoder, to.stateid, to.offset, to.count);
}
struct WriteArguments : v4::WRITE4args {};
inline bool decode(xdr::Decoder& decoder, WriteArguments& to) {
  std::uint32_t stable = 0;
  if (!decode_behind_stateid(decoder, to.stateid, to.offset, stable)) return false;
  if (stable > v4::FILE_SYNC4) return decoder.fail(xdr::Error::BadEnum);
  to.stable = static_cast<v4::stable_how4>(stable);
  return decoder.opaque(v4::item::WRITE4args_data, to.data);
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

// In nearly every COMPOUND, so its words are written in one piece. A session ID is two of them.
inline void encode_sequence(xdr::Encoder& to, const v4::SEQUENCE4res& results) {
  if (results.sr_status != v4::NFS4_OK) return encode(to, results);
  const v4::SEQUENCE4resok& ok = results.sr_resok4();
  to.integers(static_cast<std::uint32_t>(v4::NFS4_OK),
              load_be<std::uint64_t>(ok.sr_sessionid.data()),
              load_be<std::uint64_t>(ok.sr_sessionid.data() + 8), ok.sr_sequenceid, ok.sr_slotid,
              ok.sr_highest_slotid, ok.sr_target_highest_slotid, ok.sr_status_flags);
}

}  // namespace stag::nfs::nfs4
