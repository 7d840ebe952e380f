#include "nfs/v4/operation_list.h"

#include <algorithm>

namespace stag::nfs::nfs4 {

namespace {

// RENAME has two filehandles and two names of up to 255 bytes.
constexpr std::size_t kSample = 1024;

}  // namespace

bool OperationList::Entry::may_change() const {
  if (row == nullptr || row->modifies_with == 0) return false;
  if (number != v4::OP_OPEN || arguments == nullptr) return true;
  return static_cast<const v4::OPEN4args*>(arguments)->openhow.opentype == v4::OPEN4_CREATE;
}

void OperationList::end_arguments() {
  for (const Entry& entry : entries_)
    if (entry.arguments != nullptr) entry.row->end(entry.arguments);
}

[[gnu::always_inline]] inline void OperationList::decode_one(xdr::Decoder& decoder, Entry& entry) {
  if (decoder.u32(entry.number)) entry.row = find_operation(minor_, entry.number);
  if (entry.row == nullptr) {
    // 16.2.3: an operation that is not defined in this minor version.
    entry.number = v4::OP_ILLEGAL;
    entry.refusal = decoder.ok() ? v4::NFS4ERR_OP_ILLEGAL : v4::NFS4ERR_BADXDR;
  } else if (entry.row->decode == nullptr) {
    entry.refusal = v4::NFS4ERR_NOTSUPP;
  } else {
    entry.arguments = entry.row->decode(decoder, memory_);
    arguments_end_ = arguments_end_ || entry.row->destroy != nullptr;
    if (entry.arguments == nullptr) entry.refusal = v4::NFS4ERR_BADXDR;
  }
}

bool OperationList::decode(xdr::Decoder& decoder, std::uint32_t most) {
  if (!decoder.inline_opaque(tag_, v4::NFS4_OPAQUE_LIMIT) || !decoder.u32(minor_) ||
      !decoder.count(sent_, xdr::kUnbounded, 4))
    return false;
  const std::uint32_t decoded = std::min(sent_, most);
  for (std::uint32_t i = 0; i < decoded; ++i) {
    Entry& entry = entries_.emplace_back();
    decode_one(decoder, entry);
    if (i == 0) sample_ = decoder.ahead().first(std::min(decoder.remaining(), kSample));
    if (entry.refusal != v4::NFS4_OK) break;
  }
  return true;
}

}  // namespace stag::nfs::nfs4
