#include "nfs/client/v4/operations.h"

#include <algorithm>

#include "nfs/ulb/nfs4_client.h"

namespace stag::nfs::client::nfs4 {
namespace {

// In front of nearly every COMPOUND, so its words are written, and those of its results read, in
// one piece. A session ID is two of them.
void encode_sequence(xdr::Encoder& to, const v4::SEQUENCE4args& args) {
  to.integers(static_cast<std::uint32_t>(v4::OP_SEQUENCE),
              load_be<std::uint64_t>(args.sa_sessionid.data()),
              load_be<std::uint64_t>(args.sa_sessionid.data() + 8), args.sa_sequenceid,
              args.sa_slotid, args.sa_highest_slotid, std::uint32_t{args.sa_cachethis});
}
bool decode_sequence(xdr::Decoder& from, v4::SEQUENCE4res& to) {
  if (!v4::decode(from, to.sr_status)) return false;
  if (to.sr_status != v4::NFS4_OK) return true;
  std::uint64_t high = 0, low = 0;
  v4::SEQUENCE4resok& ok = to.sr_resok4();
  if (!from.integers(high, low, ok.sr_sequenceid, ok.sr_slotid, ok.sr_highest_slotid,
                     ok.sr_target_highest_slotid, ok.sr_status_flags))
    return false;
  store_be(ok.sr_sessionid.data(), high);
  store_be(ok.sr_sessionid.data() + 8, low);
  return true;
}

}  // namespace

void Request::encode(xdr::Encoder& to, std::uint32_t minor,
                     const v4::SEQUENCE4args* sequence) const {
  const std::size_t count = operations_.size() + (sequence != nullptr ? 1 : 0);
  to.u32s(0u, minor, static_cast<std::uint32_t>(count));  // the tag is empty
  if (sequence != nullptr) encode_sequence(to, *sequence);
  for (const Operation& each : operations_) {
    if (const AnyOperation* const any = std::get_if<AnyOperation>(&each)) {
      v4::encode(to, any->op);
    } else if (const Handle* const handle = std::get_if<Handle>(&each)) {
      to.u32(v4::OP_PUTFH);
      to.opaque(xdr::kNoItem, handle->bytes());
    } else {
      const v4::bitmap4& asked = std::get<Getattr>(each).asked->bitmap;
      to.u32s(v4::OP_GETATTR, static_cast<std::uint32_t>(asked.size()));
      for (const std::uint32_t word : asked) to.u32(word);
    }
  }
}

rpc::ReplyBound Request::reply_bound(bool with_sequence) const {
  rpc::ReplyBound bound;
  bound.payload_max = ulb::kNfs4CompoundMax + (with_sequence ? ulb::kNfs4SequenceMax : 0);
  for (const Operation& each : operations_) {
    if (const AnyOperation* const any = std::get_if<AnyOperation>(&each))
      ulb::add_nfs4_results(bound, any->op);
    else if (const Getattr* const getattr = std::get_if<Getattr>(&each))
      bound.payload_max += getattr->asked->results_max;
    else
      bound.payload_max += ulb::kNfs4StatusMax;
  }
  return bound;
}

bool Request::decode_results(xdr::Decoder& from, bool with_sequence) {
  results_.clear();
  for (const Operation& each : operations_)
    if (const Getattr* const getattr = std::get_if<Getattr>(&each)) getattr->to->forget();
  sequenced_ = false;
  answered_ = with_sequence ? 0 : 1;
  Bytes tag;
  std::uint32_t count = 0;
  if (!v4::decode(from, status_) || !from.inline_opaque(tag, xdr::kUnbounded) ||
      !from.count(count, xdr::kUnbounded, 8))
    return false;
  const std::size_t end = answered_ + count;
  const std::size_t whole = operations_.size() + 1;
  in_order_ = end == whole || (end < whole && status_ != v4::NFS4_OK);
  bool known = true;
  while (known && answered_ < std::min(end, whole)) known = decode_result(from, answered_++);
  // What is behind results of something else cannot be told.
  if (from.ok() && (!known || whole < end)) static_cast<void>(from.rest());
  return from.ok();
}

// Whether the result with this number is that of the operation `asked`. One that the server does
// not know has the number ILLEGAL in the results.
bool Request::is_of(std::uint32_t asked, std::uint32_t number) {
  if (number == asked) return true;
  const bool unknown = status_ == v4::NFS4ERR_OP_ILLEGAL || status_ == v4::NFS4ERR_NOTSUPP;
  in_order_ = in_order_ && unknown;
  return false;
}

// False: it cannot be read, or is of something else.
bool Request::decode_result(xdr::Decoder& from, std::size_t place) {
  const Operation* const asked = place == 0 ? nullptr : &operations_[place - 1];
  if (asked != nullptr && std::holds_alternative<AnyOperation>(*asked)) {
    Result& result = results_.emplace_back(place);
    return v4::decode(from, result.value) &&
           is_of(std::get<AnyOperation>(*asked).op.argop, result.value.resop);
  }
  std::uint32_t number = 0;
  std::uint32_t status = 0;
  if (!from.u32(number)) return false;
  if (asked == nullptr) {
    sequenced_ = is_of(v4::OP_SEQUENCE, number) && decode_sequence(from, sequence_);
    return sequenced_;
  }
  const Getattr* const getattr = std::get_if<Getattr>(asked);
  if (!is_of(getattr != nullptr ? v4::OP_GETATTR : v4::OP_PUTFH, number) || !from.u32(status))
    return false;
  return getattr == nullptr || status != v4::NFS4_OK || decode_values(from, *getattr->to);
}

OpResult* Request::result(std::size_t place) {
  for (Result& each : results_)
    if (each.place == place && each.value.resop == operation(place).argop) return &each.value;
  return nullptr;
}

}  // namespace stag::nfs::client::nfs4
