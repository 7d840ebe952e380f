#include "cli/observe/moved_bytes.h"

#include "cli/observe/statistics.h"
#include "nfs/proto/nfs2.h"
#include "nfs/proto/nfs3.h"
#include "nfs/proto/nfs4.h"

namespace stag::cli {
namespace {

// XDR (RFC 1094 2.2.5, RFC 1813 2.6).
constexpr std::size_t kWord = 4;
constexpr std::size_t kAttributes2 = 68;
constexpr std::size_t kAttributes3 = 84;
constexpr std::size_t kBefore3 = 24;  // wcc_attr
constexpr std::size_t kHandle2 = 32;

// 0 where the message is too short for it.
std::uint32_t word_at(Bytes bytes, std::size_t at) {
  return bytes.size() < at + kWord ? 0 : load_be<std::uint32_t>(bytes.data() + at);
}

// The offset behind an optional of this size (post_op_attr, pre_op_attr).
std::size_t behind_optional(Bytes bytes, std::size_t at, std::size_t size) {
  return at + kWord + (word_at(bytes, at) == 0 ? 0 : size);
}

}  // namespace

MovedBytes moved_by(const rpc::EndedCall& call) {
  MovedBytes moved;
  const std::uint32_t procedure = call.header->procedure;
  if (call.header->version == 3 && procedure == nfs::v3::NFSPROC3_READ::number) {
    moved.read = word_at(call.results, behind_optional(call.results, kWord, kAttributes3));
  } else if (call.header->version == 3 && procedure == nfs::v3::NFSPROC3_WRITE::number) {
    const std::size_t after = behind_optional(call.results, kWord, kBefore3);
    moved.written = word_at(call.results, behind_optional(call.results, after, kAttributes3));
  } else if (call.header->version == 2 && procedure == nfs::v2::NFSPROC_READ::number) {
    moved.read = word_at(call.results, kWord + kAttributes2);
  } else if (call.header->version == 2 && procedure == nfs::v2::NFSPROC_WRITE::number) {
    // Its results say nothing of it: all was written.
    moved.written = word_at(arguments_of(call), kHandle2 + 3 * kWord);
  }
  return moved;
}

MovedBytes moved_by(const nfs::nfs4::EndedOperation& operation) {
  if (operation.status != nfs::v4::NFS4_OK) return {};
  const bool writes = operation.number == nfs::v4::OP_WRITE;
  return {writes ? 0u : operation.moved, writes ? operation.moved : 0u};
}

}  // namespace stag::cli
