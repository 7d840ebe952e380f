// READDIR (RFC 8881 18.23). Entries are encoded as they are found, as long as they fit.
#include <algorithm>

#include "nfs/v4/ops/entry_list.h"
#include "nfs/v4/ops/list_store.h"
#include "nfs/v4/ops/mounted_exports.h"
#include "nfs/v4/ops/operations.h"

namespace stag::nfs::nfs4 {

namespace {

// READDIR4resok without entries: verifier, end of the list, eof.
constexpr std::uint32_t kEmptyList = 8 + 4 + 4;

// The folders below one of the pseudo file system, those that the client may enter, if by another
// flavor.
Task<ReaddirResults> list_folder(Compound& compound, const PseudoFs::Node& folder,
                                 const v4::READDIR4args& args, AttributeSet asked,
                                 std::uint32_t bytes) {
  ReaddirResults results;
  EntryList list(bytes);
  const MountedExports exports(compound, asked);
  const std::uint64_t passed = args.cookie == 0 ? 0 : args.cookie - kReservedCookies;
  for (const PseudoFs::Node* child : folder.entries) {
    if (child->cookie() <= passed) continue;
    if (list.full()) break;
    const auto entered = compound.look_into(*child);
    // 18.29.4: the client asks for the flavor of what it sees.
    if (!entered && entered.error() != v4::NFS4ERR_WRONGSEC) continue;
    Compound::FoundAttributes source = Failure{v4::NFS4ERR_WRONGSEC};
    if (entered) source = co_await exports.attributes_of(*child, entered->object);
    list.add(child->name, child->cookie(), [&](xdr::Encoder& encoder) {
      if (source)
        encode_attributes(encoder, asked, *source);
      else
        encode_attribute_error(encoder, asked, source.error());
    });
  }
  if (list.too_small()) results.status = v4::NFS4ERR_TOOSMALL;
  results.eof = !list.full();
  if (results.status == v4::NFS4_OK) results.entries = list.finish();
  co_return results;
}

}  // namespace

void encode(xdr::Encoder& encoder, const ReaddirResults& results) {
  encoder.u32(static_cast<std::uint32_t>(results.status));
  if (results.status != v4::NFS4_OK) return;
  encoder.fixed_opaque(results.verifier);
  encoder.append(results.entries);
  encoder.boolean(results.eof);
}

Task<ReaddirResults> readdir(Compound& compound, v4::READDIR4args& args) {
  ReaddirResults results;
  const AttributeSet asked(args.attr_request);
  const std::uint64_t room =
      std::min<std::uint64_t>({args.maxcount, kMaxTransfer, compound.results_left()});
  if (args.cookie == 1 || args.cookie == kReservedCookies)
    results.status = v4::NFS4ERR_BAD_COOKIE;
  else if (room < kEmptyList)
    results.status = v4::NFS4ERR_TOOSMALL;
  else if (!(asked & (settable_attributes() - readable_attributes())).empty())
    results.status = v4::NFS4ERR_INVAL;
  if (results.status != v4::NFS4_OK) co_return results;
  const auto bytes = static_cast<std::uint32_t>(room - kEmptyList);
  if (const auto* folder = std::get_if<const PseudoFs::Node*>(&compound.current()))
    co_return co_await list_folder(compound, **folder, args, asked, bytes);
  co_return co_await list_store(compound, args, asked, bytes);
}

}  // namespace stag::nfs::nfs4
