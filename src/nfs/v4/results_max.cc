#include "nfs/v4/results_max.h"

#include <algorithm>

#include "nfs/v4/operation.h"

namespace stag::nfs::nfs4 {
namespace {

// As Linux has it; the name and the value together.
constexpr std::uint32_t kLargestXattr = 64 << 10;
// Stores keep it in an extended attribute, eight bytes an entry, which becomes up to two nfsace4
// with names.
constexpr std::uint32_t kLargestAcl = 8 * kLargestXattr;
constexpr std::uint32_t kLongestLink = 4096;

class Scan {
 public:
  explicit Scan(xdr::Decoder& from) : from_(from) {}

  // False: no operation `follows` that runs.
  bool pass(std::uint32_t minor, std::uint32_t number, bool follows) {
    switch (number) {
      case v4::OP_PUTROOTFH:
      case v4::OP_GETFH:
      case v4::OP_SAVEFH:
      case v4::OP_RESTOREFH:
        return true;
      case v4::OP_SEQUENCE:
        return words(8);
      case v4::OP_ACCESS:
        return words(1);
      case v4::OP_PUTFH:
      case v4::OP_LOOKUP:
        return opaque();
      case v4::OP_GETATTR:
        return attributes();
      case v4::OP_READLINK:
        sum_ += kLongestLink;
        return true;
      case v4::OP_READ:
      case v4::OP_READ_PLUS:
        return words(6) && count(kMaxTransfer);
      case v4::OP_READDIR:
        return words(5) && count(kMaxTransfer) && bitmap();
      case v4::OP_GETXATTR:
        sum_ += kLargestXattr;
        return opaque();
      case v4::OP_LISTXATTRS:
        return words(2) && count(kLargestXattr);
      default:
        return follows && decode(minor, number);
    }
  }
  std::uint64_t sum() const { return sum_; }

 private:
  bool words(std::uint32_t count) {
    Bytes passed;
    return from_.inline_bytes(passed, 4 * count);
  }
  bool opaque() {
    Bytes passed;
    return from_.inline_opaque(passed, xdr::kUnbounded);
  }
  bool attributes() {
    std::uint32_t length = 0, first = 0;
    if (!from_.count(length, xdr::kUnbounded, 4) || (length > 0 && !from_.u32(first))) return false;
    if ((first & 1u << v4::FATTR4_ACL) != 0) sum_ += kLargestAcl;
    return length == 0 || words(length - 1);
  }
  bool bitmap() {
    std::uint32_t length = 0;
    return from_.count(length, xdr::kUnbounded, 4) && words(length);
  }
  bool count(std::uint32_t most) {
    std::uint32_t asked = 0;
    if (!from_.u32(asked)) return false;
    sum_ += std::min(asked, most);
    return true;
  }
  // Those that cost more than that, and come less often.
  bool decode(std::uint32_t minor, std::uint32_t number) {
    const Operation* const row = find_operation(minor, number);
    if (row == nullptr || row->decode == nullptr) return false;
    ArgumentMemory memory;
    void* const arguments = row->decode(from_, memory);
    if (arguments != nullptr) row->end(arguments);
    return arguments != nullptr;
  }

  xdr::Decoder& from_;
  std::uint64_t sum_ = 0;
};

}  // namespace

std::uint64_t results_max(xdr::Decoder& compound, std::uint32_t most) {
  Bytes tag;
  std::uint32_t minor = 0, sent = 0, number = 0;
  if (!compound.inline_opaque(tag, v4::NFS4_OPAQUE_LIMIT) || !compound.u32(minor) ||
      !compound.u32(sent))
    return 0;
  Scan scan(compound);
  for (std::uint32_t left = std::min(sent, most); left > 0 && compound.u32(number); --left) {
    if (!scan.pass(minor, number, left > 1)) break;
  }
  return scan.sum();
}

}  // namespace stag::nfs::nfs4
