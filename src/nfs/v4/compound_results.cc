#include "nfs/v4/compound_results.h"

#include <algorithm>
#include <limits>

namespace stag::nfs::nfs4 {

namespace {

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max() / 2;

}  // namespace

Results::Results(xdr::Encoder& encoder, Bytes tag, std::size_t operations)
    : encoder_(encoder),
      status_at_(encoder.position()),
      expected_(static_cast<std::uint32_t>(operations)) {
  if (tag.empty()) {
    encoder.u32s(v4::NFS4_OK, 0, expected_);
  } else {
    encoder.u32(v4::NFS4_OK);
    encoder.opaque(xdr::kNoItem, tag);
    encoder.u32(expected_);
  }
  count_at_ = encoder.position() - 4;
}

void Results::replace(std::uint32_t number, const Operation* row, v4::nfsstat4 status) {
  encoder_.rewind(before_);
  encoder_.u32(number);
  if (row != nullptr && row->refuse != nullptr)
    row->refuse(encoder_, status);
  else
    encoder_.u32(status);
  if (row != nullptr) pass_over(*row);
}

// RFC 8881 18.36.3: what a session allows counts RPC header, verifier and protection, too. Version
// 4.0 has nothing to negotiate: its results are never longer than those of sessions.
ResultLimits::ResultLimits(const Compound& compound, const rpc::CallContext& call)
    : ResultLimits(compound, call, call.reply_header_size()) {}

ResultLimits::ResultLimits(const Compound& compound, const rpc::CallContext& call,
                           std::int64_t header)
    : kept_max_(kUnlimited),
      room_(static_cast<std::int64_t>(std::min<std::uint64_t>(call.results_max(), kUnlimited))),
      slack_(header - oncrpc::kReplyHeaderSize),
      write_chunks_(call.write_chunks()),
      too_big_(compound.minor() == 0 ? v4::NFS4ERR_RESOURCE : v4::NFS4ERR_REP_TOO_BIG) {
  const OccupiedSlot* const slot = compound.slot();
  reply_max_ = (slot == nullptr ? compound.shared().options.clients.fore.max_response_size
                                : slot->response_max) -
               header;
  if (slot != nullptr && slot->cache_this) kept_max_ = slot->cached_max - header;
  least_ = std::min({reply_max_, kept_max_, room_});
}

std::int64_t ResultLimits::bytes_apart(const Results& results) const {
  return static_cast<std::int64_t>(results.size_apart(write_chunks_));
}

}  // namespace stag::nfs::nfs4
