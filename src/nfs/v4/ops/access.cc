// ACCESS (RFC 8881 18.1).
#include "nfs/v4/compound/status.h"
#include "nfs/v4/ops/operations.h"

namespace stag::nfs::nfs4 {

// The bits have the values of RFC 1813 3.3.4.
static_assert(v4::ACCESS4_READ == vfs::access::kRead && v4::ACCESS4_LOOKUP == vfs::access::kLookup);
static_assert(v4::ACCESS4_MODIFY == vfs::access::kModify &&
              v4::ACCESS4_EXTEND == vfs::access::kExtend);
static_assert(v4::ACCESS4_DELETE == vfs::access::kDelete &&
              v4::ACCESS4_EXECUTE == vfs::access::kExecute);

namespace {

constexpr std::uint32_t kXattrBits = v4::ACCESS4_XAREAD | v4::ACCESS4_XAWRITE | v4::ACCESS4_XALIST;

// RFC 8276 8.5: what must be asked of the store to answer for extended attributes.
std::uint32_t asked_for_xattrs(std::uint32_t asked) {
  std::uint32_t bits = 0;
  if (asked & v4::ACCESS4_XAREAD) bits |= v4::ACCESS4_READ;
  if (asked & v4::ACCESS4_XAWRITE) bits |= v4::ACCESS4_MODIFY;
  return bits;
}

std::uint32_t granted_for_xattrs(std::uint32_t granted) {
  std::uint32_t bits = v4::ACCESS4_XALIST;
  if (granted & v4::ACCESS4_READ) bits |= v4::ACCESS4_XAREAD;
  if (granted & v4::ACCESS4_MODIFY) bits |= v4::ACCESS4_XAWRITE;
  return bits;
}

bool has_xattrs(const Compound& compound, const ExportObject& object) {
  return compound.minor() >= 2 && object.store().limits().xattrs;
}

}  // namespace

Task<v4::ACCESS4res> access(Compound& compound, v4::ACCESS4args& args) {
  v4::ACCESS4res results;
  const std::uint32_t asked = args.access & vfs::access::kAll;
  if (std::holds_alternative<const PseudoFs::Node*>(compound.current())) {
    results.resok4() = {asked, asked & (v4::ACCESS4_READ | v4::ACCESS4_LOOKUP)};
    co_return results;
  }
  const ExportObject object = compound.object();
  const std::uint32_t xattrs = has_xattrs(compound, object) ? args.access & kXattrBits : 0;
  const auto found = co_await object.store().access(object.caller(), object.handle,
                                                    asked | asked_for_xattrs(xattrs));
  if (!found) co_return v4::ACCESS4res{to_nfsstat4(found.error()), {}};
  std::uint32_t granted = found->granted;
  if (object.read_only())
    granted &= ~(vfs::access::kModify | vfs::access::kExtend | vfs::access::kDelete);
  results.resok4() = {asked | xattrs, (granted & asked) | (granted_for_xattrs(granted) & xattrs)};
  co_return results;
}

}  // namespace stag::nfs::nfs4
