// SETATTR (RFC 8881 18.30).
#include "nfs/v4/compound/status.h"
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/set_acl.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

Task<v4::SETATTR4res> setattr(Compound& compound, v4::SETATTR4args& args) {
  auto wanted = decode_attributes(args.obj_attributes);
  if (!wanted) co_return v4::SETATTR4res{wanted.error(), {}};
  if (const v4::nfsstat4 bad = co_await compound.resolve_names(*wanted); bad != v4::NFS4_OK)
    co_return v4::SETATTR4res{bad, {}};
  const ExportObject object = compound.object();
  if (object.read_only()) co_return v4::SETATTR4res{v4::NFS4ERR_ROFS, {}};
  // 18.30.3: the stateid is there for a change of the size, which is like a WRITE. Kept until that
  // is done: nobody may deny it in between.
  Permitted sized = state::FileChange();
  if (wanted->values.size) {
    sized = co_await check_stateid_patiently(compound, object, args.stateid, state::Touch::Size);
    if (!sized) co_return v4::SETATTR4res{sized.error(), {}};
  }
  // In version 4.0 the stateid alone says whose delegations are not in the way (RFC 7530 9.1.4.6).
  if (compound.minor() == 0 && !wanted->values.size)
    static_cast<void>(compound.identify(args.stateid));
  const Intent intent{.touch = state::Touch::Attributes,
                      .changes = &wanted->values,
                      .as_owner = wanted->acl.has_value()};
  const auto permitted = co_await pass_gate(compound, object, intent);
  if (!permitted) co_return v4::SETATTR4res{permitted.error(), {}};
  const auto changed = co_await object.store().set_attributes(object.caller(), object.handle,
                                                              wanted->values, std::nullopt);
  if (!changed) co_return v4::SETATTR4res{to_nfsstat4(changed.error()), {}};
  if (!wanted->acl) co_return v4::SETATTR4res{v4::NFS4_OK, wanted->set.bitmap()};
  const v4::nfsstat4 status = co_await set_acl(object, *wanted->acl);
  const AttributeSet acl = status == v4::NFS4_OK ? AttributeSet() : AttributeSet{v4::FATTR4_ACL};
  co_return v4::SETATTR4res{status, (wanted->set - acl).bitmap()};
}

}  // namespace stag::nfs::nfs4
