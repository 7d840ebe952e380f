// GETATTR (RFC 8881 18.7).
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/size_at_holder.h"

namespace stag::nfs::nfs4 {

namespace {

constexpr AttributeSet kChangesWithData = {v4::FATTR4_CHANGE, v4::FATTR4_SIZE,
                                           v4::FATTR4_SPACE_USED, v4::FATTR4_TIME_METADATA,
                                           v4::FATTR4_TIME_MODIFY};

}  // namespace

void encode(xdr::Encoder& encoder, const GetattrResults& results) {
  encoder.u32(static_cast<std::uint32_t>(results.status));
  if (results.status == v4::NFS4_OK) encode_attributes(encoder, results.asked, results.source);
}

Task<GetattrResults> getattr(Compound& compound, GetattrArguments& args) {
  GetattrResults results;
  results.asked = args.asked;
  // 18.7.3: what can only be set cannot be asked for.
  static const AttributeSet kWriteOnly = settable_attributes() - readable_attributes();
  if (!(results.asked & kWriteOnly).empty()) {
    results.status = v4::NFS4ERR_INVAL;
    co_return results;
  }
  // 10.4.3: the holder of a write delegation knows better.
  std::optional<std::uint64_t> size;
  const auto* object = std::get_if<ExportObject>(&compound.current());
  if (object != nullptr && compound.shared().files.guarded() &&
      !(results.asked & kChangesWithData).empty())
    size = co_await size_at_holder(compound, *object);
  auto source = co_await compound.attributes_of(compound.current(), results.asked);
  if (source) {
    results.source = *std::move(source);
    if (size) results.source.attributes.size = *size;
  }
  if (!source) results.status = source.error();
  co_return results;
}

}  // namespace stag::nfs::nfs4
