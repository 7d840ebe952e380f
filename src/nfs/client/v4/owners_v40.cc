#include "nfs/client/v4/owners_v40.h"

namespace stag::nfs::client::nfs4 {

bool OwnersV40::Turn::begin(Ref owner) {
  if (owner == nullptr) return true;
  if (owner->busy) return false;
  owner->busy = true;
  owner_ = std::move(owner);
  return true;
}

void OwnersV40::Turn::end() {
  const Ref owner = std::exchange(owner_, nullptr);
  if (owner == nullptr) return;
  owner->busy = false;
  // A call whose time is over does not take the turn.
  while (!owner->busy && owner->waiting.wake_one()) {
  }
}

OwnersV40::Ref OwnersV40::fresh() {
  auto owner = std::make_shared<Owner>();
  owner->number = next_number_++;
  return owner;
}

OwnersV40::Ref OwnersV40::of_open(OpenId open) {
  Ref& owner = opens_[open];
  if (owner == nullptr && !idle_.empty()) {
    owner = std::move(idle_.back());
    idle_.pop_back();
  }
  if (owner == nullptr) owner = fresh();
  return owner;
}

OwnersV40::Ref OwnersV40::of_locks(const LockOwner& name) {
  Ref& owner = locks_[name];
  if (owner == nullptr) owner = fresh();
  return owner;
}

std::string OwnersV40::name_of(const Owner& owner) {
  std::string name(8, '\0');
  store_be(reinterpret_cast<std::byte*>(name.data()), owner.number);
  return name;
}

std::string OwnersV40::name_of(const LockOwner& owner) const {
  const auto found = locks_.find(owner);
  return found == locks_.end() || found->second == nullptr ? owner : name_of(*found->second);
}

void OwnersV40::release(OpenId open) {
  const auto found = opens_.find(open);
  if (found == opens_.end()) return;
  const Ref owner = std::move(found->second);
  opens_.erase(found);
  const bool useful =
      owner != nullptr && owner->confirmed && owner->sequence.certain() && !owner->busy;
  if (useful && idle_.size() < kMostIdle) idle_.push_back(owner);
}

bool OwnersV40::is_busy(const LockOwner& owner) const {
  const auto found = locks_.find(owner);
  return found != locks_.end() && found->second != nullptr && found->second->busy;
}

}  // namespace stag::nfs::client::nfs4
