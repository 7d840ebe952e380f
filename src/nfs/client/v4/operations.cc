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
// NFS4_OK, which nearly every status is, is known without a look at all of them.
bool decode_status(xdr::Decoder& from, v4::nfsstat4& to) {
  const Bytes ahead = from.ahead();
  std::uint32_t word = 0;
  if (ahead.size() < 4 || load_be<std::uint32_t>(ahead.data()) != v4::NFS4_OK)
    return v4::decode(from, to);
  to = v4::NFS4_OK;
  return from.u32(word);
}
bool decode_sequence(xdr::Decoder& from, v4::SEQUENCE4res& to) {
  if (!decode_status(from, to.sr_status)) return false;
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

bool decode_written(xdr::Decoder& from, v4::WRITE4resok& to) {
  std::uint32_t committed = 0;
  std::uint64_t verifier = 0;
  if (!from.integers(to.count, committed, verifier)) return false;
  if (committed > v4::FILE_SYNC4) return from.fail(xdr::Error::BadEnum);
  to.committed = static_cast<v4::stable_how4>(committed);
  store_be(to.writeverf.data(), verifier);
  return true;
}

// The words of READ and WRITE in front of what they differ in. `other` is a word of eight bytes and
// one of four.
template <class Last>
void encode_data(xdr::Encoder& to, v4::nfs_opnum4 number, const v4::stateid4& by,
                 std::uint64_t offset, Last last) {
  to.integers(static_cast<std::uint32_t>(number), by.seqid, load_be<std::uint64_t>(by.other.data()),
              load_be<std::uint32_t>(by.other.data() + 8), offset,
              static_cast<std::uint32_t>(last));
}

}  // namespace

void Request::encode(xdr::Encoder& to, rpc::ReplyBound& bound, std::uint32_t minor,
                     const v4::SEQUENCE4args* sequence) const {
  const std::size_t count = operations_.size() + (sequence != nullptr ? 1 : 0);
  to.u32s(0u, minor, static_cast<std::uint32_t>(count));  // the tag is empty
  bound.payload_max = ulb::kNfs4CompoundMax;
  if (sequence != nullptr) {
    encode_sequence(to, *sequence);
    bound.payload_max += ulb::kNfs4SequenceMax;
  }
  for (const Operation& each : operations_) {
    if (const AnyOperation* const any = std::get_if<AnyOperation>(&each)) {
      v4::encode(to, any->op);
      ulb::add_nfs4_results(bound, any->op);
    } else if (const Handle* const handle = std::get_if<Handle>(&each)) {
      const Bytes bytes = handle->bytes();
      to.u32s(v4::OP_PUTFH, static_cast<std::uint32_t>(bytes.size()));
      to.fixed_opaque(bytes);
      bound.payload_max += ulb::kNfs4StatusMax;
    } else if (const Getattr* const getattr = std::get_if<Getattr>(&each)) {
      const v4::bitmap4& asked = getattr->asked->bitmap;
      to.u32s(v4::OP_GETATTR, static_cast<std::uint32_t>(asked.size()));
      for (const std::uint32_t word : asked) to.u32(word);
      bound.payload_max += getattr->asked->results_max;
    } else if (const Read* const read = std::get_if<Read>(&each)) {
      encode_data(to, v4::OP_READ, read->args.stateid, read->args.offset, read->args.count);
      ulb::add_nfs4_read(bound, read->args.count);
    } else {
      const v4::WRITE4args& args = std::get<Write>(each).args;
      encode_data(to, v4::OP_WRITE, args.stateid, args.offset, args.stable);
      to.opaque(v4::item::WRITE4args_data, args.data);
      bound.payload_max += ulb::kNfs4WriteMax;
    }
  }
}

v4::stateid4& Request::stateid_of_change(Op& operation) {
  switch (operation.argop) {
    case v4::OP_ALLOCATE:
      return operation.opallocate().aa_stateid;
    case v4::OP_DEALLOCATE:
      return operation.opdeallocate().da_stateid;
    case v4::OP_CLONE:
      return operation.opclone().cl_dst_stateid;
    case v4::OP_COPY:
      return operation.opcopy().ca_dst_stateid;
    default:
      return operation.opsetattr().stateid;
  }
}

void Request::forget_results() {
  results_.clear();
  for (Operation& each : operations_) {
    if (const Getattr* const getattr = std::get_if<Getattr>(&each))
      getattr->to->forget();
    else if (Read* const read = std::get_if<Read>(&each))
      read->done = false;
    else if (Write* const write = std::get_if<Write>(&each))
      write->done = false;
  }
  sequenced_ = false;
}

// Whether the result with this number is that of the operation `asked`. One that the server does
// not know has the number ILLEGAL in the results.
inline bool Request::is_of(std::uint32_t asked, std::uint32_t number) {
  if (number == asked) return true;
  const bool unknown = status_ == v4::NFS4ERR_OP_ILLEGAL || status_ == v4::NFS4ERR_NOTSUPP;
  in_order_ = in_order_ && unknown;
  return false;
}

v4::nfs_opnum4 Request::number_of(const Operation& operation) {
  if (std::holds_alternative<Handle>(operation)) return v4::OP_PUTFH;
  if (std::holds_alternative<Getattr>(operation)) return v4::OP_GETATTR;
  if (std::holds_alternative<Read>(operation)) return v4::OP_READ;
  if (std::holds_alternative<Write>(operation)) return v4::OP_WRITE;
  return std::get<AnyOperation>(operation).op.argop;
}

[[gnu::always_inline]] inline bool Request::decode_sequence_result(xdr::Decoder& from) {
  std::uint32_t number = 0;
  sequenced_ =
      from.u32(number) && is_of(v4::OP_SEQUENCE, number) && decode_sequence(from, sequence_);
  return sequenced_;
}

// False: it cannot be read, or is of something else.
[[gnu::always_inline]] inline bool Request::decode_result(xdr::Decoder& from, std::size_t place) {
  if (place == 0) return decode_sequence_result(from);
  Operation& asked = operations_[place - 1];
  if (const AnyOperation* const any = std::get_if<AnyOperation>(&asked)) {
    Result& result = results_.emplace_back(place);
    return v4::decode(from, result.value) && is_of(any->op.argop, result.value.resop);
  }
  std::uint32_t number = 0;
  std::uint32_t status = 0;
  if (!from.integers(number, status) || !is_of(number_of(asked), number)) return false;
  if (status != v4::NFS4_OK) return true;
  if (const Getattr* const getattr = std::get_if<Getattr>(&asked))
    return decode_values(from, *getattr->to);
  if (Read* const read = std::get_if<Read>(&asked))
    return read->done = v4::decode(from, read->results);
  if (Write* const write = std::get_if<Write>(&asked))
    return write->done = decode_written(from, write->results);
  return true;
}

bool Request::decode_results(xdr::Decoder& from, bool with_sequence) {
  if (std::exchange(read_, true)) forget_results();
  std::size_t next = answered_ = with_sequence ? 0 : 1;
  Bytes tag;
  std::uint32_t count = 0;
  if (!decode_status(from, status_) || !from.inline_opaque(tag, xdr::kUnbounded) ||
      !from.count(count, xdr::kUnbounded, 8))
    return false;
  const std::size_t end = next + count;
  const std::size_t whole = operations_.size() + 1;
  in_order_ = end == whole || (end < whole && status_ != v4::NFS4_OK);
  bool known = true;
  while (known && next < std::min(end, whole)) known = decode_result(from, next++);
  answered_ = next;
  // What is behind results of something else cannot be told.
  if (from.ok() && (!known || whole < end)) static_cast<void>(from.rest());
  return from.ok();
}

OpResult* Request::result(std::size_t place) {
  for (Result& each : results_)
    if (each.place == place && each.value.resop == operation(place).argop) return &each.value;
  return nullptr;
}

}  // namespace stag::nfs::client::nfs4
