#include "nfs/v4/operation_list.h"

#include <algorithm>

namespace stag::nfs::nfs4 {

namespace {

constexpr std::size_t kSample = 128;

Buffer sample_of(xdr::Decoder decoder) {
  const Buffer rest = decoder.rest();
  return rest.slice(0, std::min(rest.size(), kSample));
}

}  // namespace

OperationList::~OperationList() {
  for (const Entry& entry : entries_)
    if (entry.arguments != nullptr) entry.row->destroy(entry.arguments);
}

bool OperationList::decode(xdr::Decoder& decoder) {
  const std::uint32_t begin = decoder.position();
  if (!decoder.inline_opaque(tag_, v4::NFS4_OPAQUE_LIMIT) || !decoder.u32(minor_) ||
      !decoder.count(sent_, xdr::kUnbounded, 4))
    return false;
  const std::uint32_t decoded = std::min(sent_, kMaxOperations);
  entries_.reserve(decoded);
  for (std::uint32_t i = 0; i < decoded; ++i) {
    entries_.push_back(decode_one(decoder));
    if (i == 0) sample_ = sample_of(decoder);
    if (entries_.back().refusal != v4::NFS4_OK) break;
  }
  size_ = decoder.position() - begin;
  return true;
}

OperationList::Entry OperationList::decode_one(xdr::Decoder& decoder) {
  Entry entry;
  if (!decoder.u32(entry.number)) return {v4::OP_ILLEGAL, nullptr, nullptr, v4::NFS4ERR_BADXDR};
  entry.row = find_operation(minor_, entry.number);
  // 16.2.3: an operation that is not defined in this minor version.
  if (entry.row == nullptr) return {v4::OP_ILLEGAL, nullptr, nullptr, v4::NFS4ERR_OP_ILLEGAL};
  if (entry.row->decode == nullptr) {
    entry.refusal = v4::NFS4ERR_NOTSUPP;
    return entry;
  }
  entry.arguments = entry.row->decode(decoder, memory_);
  if (entry.arguments == nullptr) entry.refusal = v4::NFS4ERR_BADXDR;
  return entry;
}

}  // namespace stag::nfs::nfs4
