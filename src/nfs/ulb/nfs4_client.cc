#include "nfs/ulb/nfs4_client.h"

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <limits>

#include "nfs/ulb/nfs3.h"

namespace stag::nfs::ulb {
namespace {

// Encoded sizes in bytes (RFC 8881 section 3).
constexpr std::uint32_t kOperation = kNfs4StatusMax;
constexpr std::uint32_t kStateid = 16;
constexpr std::uint32_t kChangeInfo = 20;
constexpr std::uint32_t kVerifier = 8;
constexpr std::uint32_t kBitmap = 4 + 3 * 4;
constexpr std::uint32_t kOpaque = 4 + v4::NFS4_OPAQUE_LIMIT;
constexpr std::uint32_t kHandle = 4 + v4::NFS4_FHSIZE;
constexpr std::uint32_t kDenied = 20 + 8 + kOpaque;
// A write delegation whose permissions name a user.
constexpr std::uint32_t kDelegation = 4 + kStateid + 4 + 12 + 12 + kOpaque;
// Every attribute takes less that is not of kUnbounded, a name or a handle.
constexpr std::uint32_t kAttribute = 16;
constexpr std::uint32_t kMaxListing = 1u << 30;

// Of the attributes with these numbers; a bitmap of two words.
constexpr std::uint64_t attributes(std::initializer_list<std::uint32_t> numbers) {
  std::uint64_t bits = 0;
  for (const std::uint32_t number : numbers) bits |= std::uint64_t{1} << number;
  return bits;
}
constexpr std::uint64_t kOwners = attributes({v4::FATTR4_OWNER, v4::FATTR4_OWNER_GROUP});
constexpr std::uint64_t kFilehandle = attributes({v4::FATTR4_FILEHANDLE});
constexpr std::uint64_t kUnbounded =
    attributes({v4::FATTR4_ACL, v4::FATTR4_DACL, v4::FATTR4_SACL, v4::FATTR4_FS_LOCATIONS});
constexpr std::uint32_t kUnboundedInThirdWord = 1u << (v4::FATTR4_FS_LOCATIONS_INFO - 64);

std::uint32_t attributes_max(const v4::bitmap4& asked) {
  const auto word = [&asked](std::size_t index) {
    return index < asked.size() ? asked[index] : 0u;
  };
  const auto count = [](std::uint64_t bits) {
    return static_cast<std::uint32_t>(std::popcount(bits));
  };
  const std::uint64_t two = std::uint64_t{word(1)} << 32 | word(0);
  const std::uint32_t owners = count(two & kOwners);
  const std::uint32_t handles = count(two & kFilehandle);
  const std::uint32_t unbounded = count(two & kUnbounded) + count(word(2) & kUnboundedInThirdWord);
  const std::uint32_t others = count(two) + count(word(2)) - owners - handles - unbounded;
  return kBitmap + 4 + owners * kOpaque + handles * kHandle + unbounded * kUsualUnbounded +
         others * kAttribute;
}

// RFC 8881 18.23.3: maxcount limits the whole resok structure.
std::uint32_t listing_max(std::uint32_t count) {
  return (std::clamp(count, kVerifier + 8, kMaxListing) + 3) / 4 * 4;
}

std::uint32_t state_results_max(const v4::nfs_argop4& operation) {
  switch (operation.argop) {
    case v4::OP_OPEN:
      return kStateid + kChangeInfo + 4 + kBitmap + kDelegation;
    case v4::OP_LOCK:
    case v4::OP_LOCKT:
      return kDenied;
    case v4::OP_EXCHANGE_ID:  // with one implementation ID of usual length
      return 16 + 4 + 8 + kOpaque + kOpaque + 4 + kOpaque;
    case v4::OP_SETCLIENTID:  // CLID_INUSE names the client that has it
      return kOpaque;
    case v4::OP_CREATE_SESSION:
      return 24 + 2 * 32;
    case v4::OP_SEQUENCE:
      return kNfs4SequenceMax - kOperation;
    default:
      return kStateid;
  }
}

// Without data of READ.
std::uint32_t results_max(const v4::nfs_argop4& operation) {
  switch (operation.argop) {
    case v4::OP_GETATTR:
      return nfs4_getattr_max(operation.opgetattr().attr_request);
    case v4::OP_READDIR:
      return kOperation + listing_max(operation.opreaddir().maxcount);
    case v4::OP_LISTXATTRS:
      return kOperation + listing_max(operation.oplistxattrs().lxa_maxcount);
    case v4::OP_GETXATTR:
      return kOperation + kUsualUnbounded;
    case v4::OP_READLINK:
      return kOperation + 4 + kMaxLinkText;
    case v4::OP_GETFH:
      return kOperation + kHandle;
    case v4::OP_CREATE:
    case v4::OP_RENAME:
      return kOperation + 2 * kChangeInfo + kBitmap;
    case v4::OP_REMOVE:
    case v4::OP_LINK:
    case v4::OP_SETXATTR:
    case v4::OP_REMOVEXATTR:
      return kOperation + kChangeInfo;
    case v4::OP_COPY:
      return kOperation + 4 + kStateid + 8 + 4 + kVerifier + 8;
    case v4::OP_OFFLOAD_STATUS:
      return kOperation + 8 + 8;
    default:
      return kOperation + state_results_max(operation);
  }
}

rpc::ReplyBound compound_bound(const v4::COMPOUND4args& args) {
  rpc::ReplyBound bound;
  bound.payload_max = kNfs4CompoundMax + static_cast<std::uint32_t>((args.tag.size() + 3) / 4 * 4);
  for (const v4::nfs_argop4& operation : args.argarray) add_nfs4_results(bound, operation);
  return bound;
}

constexpr std::array kNfs4Client{
    rpc::bind<v4::NFSPROC4_COMPOUND>(
        {v4::item::WRITE4args_data, v4::item::createtype4_linkdata},
        {v4::item::READ4resok_data, v4::item::READLINK4resok_link},
        [](const v4::COMPOUND4args& args) { return compound_bound(args); })
        .paired(rpc::Pairing::ByIndex),
};

}  // namespace

std::uint32_t nfs4_getattr_max(const v4::bitmap4& asked) {
  return kOperation + attributes_max(asked);
}

void add_nfs4_results(rpc::ReplyBound& bound, const v4::nfs_argop4& operation) {
  const std::uint64_t payload = std::uint64_t{bound.payload_max} + results_max(operation);
  bound.payload_max = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(payload, std::numeric_limits<std::uint32_t>::max()));
  if (operation.argop == v4::OP_READ)
    bound.items.push_back({v4::item::READ4resok_data, operation.opread().count});
  // Wanted inline: what is too long for that comes in the Reply chunk.
  if (operation.argop == v4::OP_READLINK) bound.items.push_back({v4::item::READLINK4resok_link, 0});
}

rpc::Binding nfs4_client() {
  return rpc::Binding(kNfs4Client);
}

}  // namespace stag::nfs::ulb
