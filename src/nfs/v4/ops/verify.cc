// VERIFY and NVERIFY (RFC 8881 18.31, 18.15): whether attributes are what the client thinks.
#include "nfs/v4/ops/operations.h"

namespace stag::nfs::nfs4 {

namespace {

// NFS4ERR_SAME or NFS4ERR_NOT_SAME, or why it cannot be said.
Task<v4::nfsstat4> compare(Compound& compound, const v4::fattr4& expected) {
  const AttributeSet asked(expected.attrmask);
  const AttributeSet readable = readable_attributes(compound.minor());
  if (AttributeSet::has_unknown(expected.attrmask) ||
      !(asked - readable - settable_attributes()).empty())
    co_return v4::NFS4ERR_ATTRNOTSUPP;
  // 18.31.3: neither rdattr_error nor what can only be set.
  if (asked.has(v4::FATTR4_RDATTR_ERROR) || !(asked - readable).empty())
    co_return v4::NFS4ERR_INVAL;
  const auto source = co_await compound.attributes_of(compound.current(), asked);
  if (!source) co_return source.error();
  if (given_attributes(asked, *source) != asked) co_return v4::NFS4ERR_ATTRNOTSUPP;
  xdr::Encoder now;
  encode_attributes(now, asked, *source);
  xdr::Encoder then;
  asked.encode(then);
  then.opaque(xdr::kNoItem, expected.attr_vals);
  co_return std::move(now).finish().rope() == std::move(then).finish().rope()
      ? v4::NFS4ERR_SAME
      : v4::NFS4ERR_NOT_SAME;
}

}  // namespace

Task<v4::VERIFY4res> verify(Compound& compound, v4::VERIFY4args& args) {
  const v4::nfsstat4 found = co_await compare(compound, args.obj_attributes);
  co_return v4::VERIFY4res{found == v4::NFS4ERR_SAME ? v4::NFS4_OK : found};
}

Task<v4::NVERIFY4res> nverify(Compound& compound, v4::NVERIFY4args& args) {
  const v4::nfsstat4 found = co_await compare(compound, args.obj_attributes);
  co_return v4::NVERIFY4res{found == v4::NFS4ERR_NOT_SAME ? v4::NFS4_OK : found};
}

}  // namespace stag::nfs::nfs4
