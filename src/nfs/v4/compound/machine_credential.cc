#include "nfs/v4/compound/machine_credential.h"

#include "nfs/v4/compound/state_status.h"

namespace stag::nfs::nfs4 {

namespace {

template <class Id>
v4::nfsstat4 check(const Compound& compound, const Id& id) {
  const std::string principal = compound.principal();
  return to_nfsstat4(compound.shared().clients.check_credential(
      id, {bytes_of(principal), compound.has_integrity()}));
}

}  // namespace

v4::nfsstat4 check_machine(const Compound& compound, v4::clientid4 clientid) {
  return check(compound, clientid);
}

v4::nfsstat4 check_machine(const Compound& compound, const v4::sessionid4& sessionid) {
  return check(compound, sessionid);
}

bool proves_as_much_as_its_client(const Compound& compound) {
  if (compound.has_integrity()) return true;
  const state::LifePtr& life = compound.life();
  if (life == nullptr) return false;
  const auto client = compound.shared().clients.identity(life->clientid);
  return client && !Compound::names_by_kerberos(client->principal);
}

std::uint64_t allowed_to_machine(const Compound& compound) {
  const OccupiedSlot* const slot = compound.slot();
  if (slot == nullptr || slot->life->protection.must_allow == 0) return 0;
  const bool machine = check(compound, slot->life->clientid) == v4::NFS4_OK;
  return machine ? slot->life->protection.must_allow : 0;
}

}  // namespace stag::nfs::nfs4
