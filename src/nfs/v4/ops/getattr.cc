// GETATTR (RFC 8881 18.7).
#include "nfs/v4/compound/status.h"
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/size_at_holder.h"

namespace stag::nfs::nfs4 {

namespace {

constexpr AttributeSet kChangesWithData = {v4::FATTR4_CHANGE, v4::FATTR4_SIZE,
                                           v4::FATTR4_SPACE_USED, v4::FATTR4_TIME_METADATA,
                                           v4::FATTR4_TIME_MODIFY};

using Found = Result<AttributeSource, v4::nfsstat4>;

v4::nfsstat4 encoded(xdr::Encoder& to, AttributeSet asked, const Found& found) {
  const v4::nfsstat4 status = found ? v4::NFS4_OK : found.error();
  to.u32(static_cast<std::uint32_t>(status));
  if (found) encode_attributes(to, asked, *found);
  return status;
}

Task<v4::nfsstat4> encoded_later(xdr::Encoder& to, AttributeSet asked, Eventual<Found> found) {
  co_return encoded(to, asked, co_await std::move(found));
}

Task<v4::nfsstat4> getattr_beside_holder(Compound& compound, AttributeSet asked, xdr::Encoder& to) {
  SizeAtHolder size = std::optional<std::uint64_t>();
  if (const auto* object = std::get_if<ExportObject>(&compound.current()))
    size = co_await size_at_holder(compound, *object);
  if (!size) co_return encoded(to, asked, Failure{size.error()});
  Found found = co_await compound.attributes_of(compound.current(), asked);
  if (found && *size) found->attributes.size = **size;
  co_return encoded(to, asked, found);
}

using Stat = vfs::Operation<vfs::Attributes>;

v4::nfsstat4 encoded(xdr::Encoder& to, const vfs::Outcome<vfs::Attributes>& found) {
  const v4::nfsstat4 status = found ? v4::NFS4_OK : to_nfsstat4(found.error());
  to.u32(static_cast<std::uint32_t>(status));
  if (found) encode_stat(to, *found);
  return status;
}

Task<v4::nfsstat4> stat_later(xdr::Encoder& to, Stat stat) {
  co_return encoded(to, co_await std::move(stat));
}

// 18.7.3: what can only be set cannot be asked for.
bool asks_for_write_only(AttributeSet asked) {
  static const AttributeSet kWriteOnly = settable_attributes() - readable_attributes();
  return !(asked & kWriteOnly).empty();
}

// What most GETATTRs ask for: nothing has to be collected for it.
Eventual<v4::nfsstat4> stat(const ExportObject& object, xdr::Encoder& to) {
  Stat found = object.store().attributes(object.caller(), object.handle);
  if (found.ready()) return encoded(to, found.value());
  return stat_later(to, std::move(found));
}

}  // namespace

Eventual<v4::nfsstat4> getattr(Compound& compound, GetattrArguments& args, xdr::Encoder& results) {
  const bool of_stat = is_stat(args.asked);
  if (!of_stat && asks_for_write_only(args.asked))
    return encoded(results, args.asked, Failure{v4::NFS4ERR_INVAL});
  // 10.4.3: the holder of a write delegation knows better.
  if (compound.shared().files.guarded() && !(args.asked & kChangesWithData).empty())
    return getattr_beside_holder(compound, args.asked, results);
  const auto* object = std::get_if<ExportObject>(&compound.current());
  if (object != nullptr && of_stat && !compound.tells_names()) return stat(*object, results);
  Eventual<Found> found = compound.attributes_of(compound.current(), args.asked);
  if (found.ready()) return encoded(results, args.asked, found.value());
  return encoded_later(results, args.asked, std::move(found));
}

}  // namespace stag::nfs::nfs4
