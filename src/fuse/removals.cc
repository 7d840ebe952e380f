#include "fuse/removals.h"

#include <algorithm>
#include <utility>

namespace stag::fuse {

Removals::Removal::Removal(Removals& owner, DirectoryName name)
    : owner_(owner), taken_(owner.running_.insert(owner.running_.end(), {0, std::move(name)})) {}

Removals::Removal::~Removal() {
  owner_.running_.erase(taken_);
  owner_.waiters_.tell();
}

void Removals::Removal::done() {
  if (taken_->number != 0) owner_.lost_[taken_->number] = taken_->name;
}

Removals::Look::Look(Removals& owner, DirectoryName name)
    : owner_(owner), place_(owner.looks_.insert(owner.looks_.end(), std::move(name))) {}

Removals::Look::~Look() {
  owner_.looks_.erase(place_);
  owner_.waiters_.tell();
}

bool Removals::in_progress(std::uint64_t number) const {
  if (number == 0) return false;
  return std::ranges::any_of(running_, [&](const Taken& taken) { return taken.number == number; });
}

Task<void> Removals::ended(std::uint64_t number) {
  while (in_progress(number)) co_await waiters_.change();
}

Task<void> Removals::ended(DirectoryName name) {
  const auto is_of = [&](const Taken& taken) { return taken.name == name; };
  while (std::ranges::any_of(running_, is_of)) co_await waiters_.change();
}

Task<void> Removals::looked(DirectoryName name) {
  while (std::ranges::find(looks_, name) != looks_.end()) co_await waiters_.change();
}

const DirectoryName* Removals::lost(std::uint64_t number) const {
  const auto found = lost_.find(number);
  return found == lost_.end() ? nullptr : &found->second;
}

void Removals::contend(const DirectoryName& name) {
  contended_.remove(name);
  contended_.push_front(name);
  if (contended_.size() > kMostContended) contended_.pop_back();
}

bool Removals::is_contended(const DirectoryName& name) const {
  return std::ranges::find(contended_, name) != contended_.end();
}

}  // namespace stag::fuse
