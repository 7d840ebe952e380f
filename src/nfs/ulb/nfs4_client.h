// The Upper-Layer Binding of NFS version 4 for a client that has its results placed (RFC 8267
// section 6): the items of nfs4.h, and how large the Reply to a COMPOUND can be. Each READ gets a
// Write chunk, READLINK an empty one where READs have some (6.4.1), else none: Linux 6.1 writes a
// link's text from four bytes too early on. Constant tables, usable from any thread.
//
// Results without a maximum in the protocol (6.2: attributes like acl, extended attributes) are
// counted with a usual size, which has them in a Reply chunk; a client that asks for one sends it
// in a COMPOUND that changes nothing (6.2.1).
#pragma once

#include "nfs/proto/nfs4.h"
#include "rpc/binding.h"

namespace stag::nfs::ulb {

// Bytes that are provided for a result without a maximum.
inline constexpr std::uint32_t kUsualUnbounded = 16u << 10;

// Program 100003 version 4.
rpc::Binding nfs4_client();

// For clients that bound the Reply of their COMPOUNDs themselves. Bytes of status, an empty tag and
// the count of results; of the largest results of an operation, its number included: one that has
// only a status, SEQUENCE, WRITE, READ, and GETATTR of these attributes.
inline constexpr std::uint32_t kNfs4CompoundMax = 3 * 4;
inline constexpr std::uint32_t kNfs4StatusMax = 2 * 4;
inline constexpr std::uint32_t kNfs4SequenceMax = kNfs4StatusMax + 16 + 5 * 4;
inline constexpr std::uint32_t kNfs4WriteMax = kNfs4StatusMax + 2 * 4 + 8;
inline constexpr std::uint32_t kNfs4ReadMax = kNfs4StatusMax + 2 * 4;  // without the data
std::uint32_t nfs4_getattr_max(const v4::bitmap4& asked);
// Adds those of a READ of so many bytes.
inline void add_nfs4_read(rpc::ReplyBound& bound, std::uint32_t count) {
  bound.payload_max += kNfs4ReadMax;
  bound.items.push_back({v4::item::READ4resok_data, count});
}
// Adds the largest results of any operation, with an item for the data of READ.
void add_nfs4_results(rpc::ReplyBound& bound, const v4::nfs_argop4& operation);

}  // namespace stag::nfs::ulb
