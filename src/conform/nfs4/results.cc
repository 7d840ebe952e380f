#include "conform/nfs4/results.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "conform/nfs4/client.h"
#include "xdr/encoder.h"

namespace stag::conform::nfs4 {
namespace {

// Each result begins with its operation and its status.
v4::nfsstat4 status_of(const OpResult& result) {
  xdr::Encoder encoder;
  encode(encoder, result);
  const xdr::Stream stream = std::move(encoder).finish();
  return static_cast<v4::nfsstat4>(load_be<std::uint32_t>(stream.head().data() + 4));
}

// Cases take results for what the status says: of one that says something else nothing is read.
std::string difference(const Op& asked, const OpResult& result, v4::nfsstat4 due) {
  const bool illegal = result.resop == v4::OP_ILLEGAL && due == v4::NFS4ERR_OP_ILLEGAL;
  if (result.resop != asked.argop && !illegal)
    return fmt::format("the result of {} says that it is one of {}", name_of(asked.argop),
                       name_of(result.resop));
  const v4::nfsstat4 came = status_of(result);
  if (came == due) return {};
  return fmt::format("the result of {} says {}, and COMPOUND {}", name_of(asked.argop),
                     name_of(came), name_of(due));
}

}  // namespace

std::string mismatch(const v4::COMPOUND4args& args, const v4::COMPOUND4res& results) {
  const auto& came = results.resarray;
  if (results.tag != args.tag) return "the tag came back changed";
  if (came.size() > args.argarray.size()) return "more results than operations";
  if (results.status == v4::NFS4_OK && came.size() < args.argarray.size())
    return "NFS4_OK with fewer results than operations";
  for (std::size_t i = 0; i < came.size(); ++i) {
    const bool last = i + 1 == came.size();
    std::string wrong = difference(args.argarray[i], came[i], last ? results.status : v4::NFS4_OK);
    if (!wrong.empty()) return wrong;
  }
  return {};
}

}  // namespace stag::conform::nfs4
