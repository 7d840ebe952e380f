#include "nfs/client/v4/delegations.h"

#include <algorithm>

namespace stag::nfs::client::nfs4 {

std::string Delegations::key(const Handle& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.size()};
}

// Its open stays while somebody uses it; the file may be delegated anew.
void Delegations::unlist(Entry entry) {
  if (entry->state == State::Returned) return;
  // The first that needs memory: without it nothing has changed, and it is done again.
  const auto found = by_file_.find(key(entry->file.handle));
  if (entry->state == State::Held) --held_;
  if (entry->state == State::Due) --due_;
  entry->state = State::Returned;
  if (found != by_file_.end() && found->second == entry) by_file_.erase(found);
}

void Delegations::erase(Entry entry) {
  unlist(entry);
  by_open_.erase(entry->file.open);
  entries_.erase(entry);
}

Delegations::Delegation* Delegations::use(const Handle& file, std::uint32_t access) {
  if (by_file_.empty()) return nullptr;
  const auto found = by_file_.find(key(file));
  if (found == by_file_.end() || found->second->state != State::Held) return nullptr;
  if ((access & ~found->second->access) != 0) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  ++found->second->users;
  return &*found->second;
}

bool Delegations::release(OpenId open) {
  const auto found = by_open_.find(open);
  if (found == by_open_.end()) return false;
  Delegation& delegation = *found->second;
  if (delegation.users > 0) --delegation.users;
  if (delegation.users > 0 || delegation.state != State::Returned) return true;
  erase(found->second);
  return false;
}

bool Delegations::is_used(OpenId open) const {
  const auto found = by_open_.find(open);
  return found != by_open_.end() && found->second->users > 0;
}

bool Delegations::is_idle(OpenId open) const {
  return by_open_.contains(open) && !is_used(open);
}

bool Delegations::knows(const v4::stateid4& stateid) const {
  return std::ranges::any_of(entries_, [&](const Delegation& delegation) {
    return delegation.stateid.other == stateid.other;
  });
}

bool Delegations::add(const File& file, const v4::stateid4& stateid, std::uint32_t access,
                      std::optional<Written> written) {
  std::string name = key(file.handle);
  if (by_file_.contains(name)) return false;
  entries_.push_front(
      {.file = file, .stateid = stateid, .access = access, .written = written, .users = 1});
  try {
    by_open_.emplace(file.open, entries_.begin());
    by_file_.emplace(std::move(name), entries_.begin());
  } catch (...) {
    by_open_.erase(file.open);
    entries_.pop_front();
    throw;
  }
  ++held_;
  return true;
}

const Attributes* Delegations::attributes(const Handle& file) const {
  if (by_file_.empty()) return nullptr;
  const auto found = by_file_.find(key(file));
  if (found == by_file_.end()) return nullptr;
  const Delegation& delegation = *found->second;
  const bool good = delegation.state == State::Held && delegation.attributes.has_value() &&
                    delegation.as_of == changes_;
  return good ? &*delegation.attributes : nullptr;
}

void Delegations::remember(const Handle& file, const Attributes& attributes, std::uint64_t as_of) {
  if (by_file_.empty()) return;
  const auto found = by_file_.find(key(file));
  if (found == by_file_.end()) return;
  found->second->attributes = attributes;
  found->second->as_of = as_of;
  if (found->second->written && as_of == changes_) found->second->written->size = attributes.size;
}

Delegations::Written* Delegations::written(const Handle& file) {
  if (by_file_.empty()) return nullptr;
  const auto found = by_file_.find(key(file));
  return found == by_file_.end() || !found->second->written ? nullptr : &*found->second->written;
}

void Delegations::on_write(const Handle& file, std::uint64_t end) {
  Written* const known = written(file);
  if (known == nullptr) return;
  known->modified = true;
  if (known->size) known->size = std::max(*known->size, end);
}

void Delegations::on_resize(const Handle& file, std::optional<std::uint64_t> size) {
  Written* const known = written(file);
  if (known == nullptr) return;
  known->modified = true;
  known->size = size;
}

// RFC 8881 10.4.3: a file that was not modified has the `change` that it was delegated with, one
// that was has another one.
std::optional<Delegations::Now> Delegations::now(const Handle& file) const {
  const auto found = by_file_.find(key(file));
  if (found == by_file_.end() || !found->second->written) return std::nullopt;
  const Written& known = *found->second->written;
  if (!known.size) return std::nullopt;
  return Now{known.change + (known.modified ? 1 : 0), *known.size};
}

std::optional<Delegations::Return> Delegations::take(Entry entry) {
  if (entry->state != State::Held && entry->state != State::Due) return std::nullopt;
  --(entry->state == State::Held ? held_ : due_);
  entry->state = State::Returning;
  return Return{entry->file, entry->stateid, entry->written.has_value()};
}

std::optional<Delegations::Return> Delegations::take(const Handle& file) {
  const auto found = by_file_.find(key(file));
  return found == by_file_.end() ? std::nullopt : take(found->second);
}

std::optional<Delegations::Return> Delegations::take(const v4::stateid4& stateid) {
  for (auto at = entries_.begin(); at != entries_.end(); ++at)
    if (at->stateid.other == stateid.other) return take(at);
  return std::nullopt;
}

std::optional<Delegations::Return> Delegations::take(OpenId open) {
  const auto found = by_open_.find(open);
  return found == by_open_.end() ? std::nullopt : take(found->second);
}

std::optional<Delegations::Return> Delegations::take_oldest() {
  std::optional<Entry> oldest;
  for (auto at = entries_.begin(); at != entries_.end(); ++at)
    if (at->state == State::Held && (!oldest || at->users == 0 || (*oldest)->users != 0))
      oldest = at;
  return oldest ? take(*oldest) : std::nullopt;
}

void Delegations::on_not_returned(OpenId open) {
  const auto found = by_open_.find(open);
  if (found == by_open_.end() || found->second->state != State::Returning) return;
  found->second->state = State::Due;
  ++due_;
}

std::optional<Delegations::Return> Delegations::take_due() {
  const auto due = std::ranges::find(entries_, State::Due, &Delegation::state);
  return due == entries_.end() ? std::nullopt : take(due);
}

bool Delegations::returning(const v4::stateid4& stateid) const {
  return std::ranges::any_of(entries_, [&](const Delegation& delegation) {
    return delegation.state == State::Returning && delegation.stateid.other == stateid.other;
  });
}

std::vector<v4::stateid4> Delegations::stateids() const {
  std::vector<v4::stateid4> all;
  for (const Delegation& delegation : entries_)
    if (delegation.state != State::Returned) all.push_back(delegation.stateid);
  return all;
}

bool Delegations::on_returned(OpenId open) {
  const auto found = by_open_.find(open);
  if (found == by_open_.end()) return false;
  unlist(found->second);
  if (found->second->users > 0) return false;
  erase(found->second);
  return true;
}

std::vector<Delegations::OpenId> Delegations::on_restart() {
  std::vector<OpenId> unused;
  // What needs memory comes first: without it nothing is lost, and all is done again.
  unused.reserve(entries_.size());
  for (auto at = entries_.begin(); at != entries_.end(); ++at) unlist(at);
  for (auto at = entries_.begin(); at != entries_.end();) {
    const auto entry = at++;
    if (entry->users > 0) continue;
    unused.push_back(entry->file.open);
    erase(entry);
  }
  return unused;
}

}  // namespace stag::nfs::client::nfs4
