#include "nfs/lock/sharing.h"

namespace stag::nfs::lock {

namespace {

// An owner that has nothing in the table.
const OwnerPtr& nobody() {
  static const OwnerPtr kNobody = std::make_shared<Owner>();
  return kNobody;
}

}  // namespace

Sharing::Sharing(state::Gate& gate, const FsidMap& stores, std::mutex& mutex,
                 const LockTable& table, Recheck recheck)
    : gate_(gate),
      files_(*gate.files()),
      stores_(stores),
      mutex_(mutex),
      table_(table),
      recheck_(std::move(recheck)) {
  files_.share_with(this);
}

Sharing::~Sharing() {
  files_.stop_sharing_with(*this);
}

// Set before the request is checked: NFSv4 that releases something afterwards looks for waiters,
// and finds the request if it blocked.
void Sharing::begin() {
  any_ = true;
  waiting_ = true;
}

void Sharing::note(bool holds, bool waits) {
  any_ = holds;
  waiting_ = waits;
}

// NFSv4 keys a file by its export, NLM by its file system, which several exports may share.
std::vector<state::FileKey> Sharing::keys_of(const FileKey& file) const {
  std::vector<state::FileKey> keys;
  for (const std::uint32_t export_id : stores_.exports_with(file.store))
    keys.push_back({export_id, file.handle});
  return keys;
}

std::optional<FileKey> Sharing::key_of(const state::FileKey& file) const {
  const auto number = stores_.find(static_cast<std::uint32_t>(file.file_system));
  if (!number) return std::nullopt;
  return FileKey{*number, file.handle};
}

bool Sharing::conflicts(const LockRequest& request) {
  for (const state::FileKey& key : keys_of(request.file)) {
    const auto found = files_.range_conflict(key, request.range, request.exclusive);
    if (found.verdict.granted()) continue;
    if (found.verdict.kind == state::Verdict::Kind::Lapsed) lapsed_.push_back(found.verdict.who);
    return true;
  }
  return false;
}

bool Sharing::conflicts(const FileKey& file, const Share& share) {
  for (const state::FileKey& key : keys_of(file)) {
    const state::Verdict verdict = files_.share_conflict(key, share.access, share.denied);
    if (verdict.granted()) continue;
    if (verdict.kind == state::Verdict::Kind::Lapsed) lapsed_.push_back(verdict.who);
    return true;
  }
  return false;
}

std::optional<Held> Sharing::holder(const LockRequest& request) const {
  for (const state::FileKey& key : keys_of(request.file)) {
    auto found = files_.range_conflict(key, request.range, request.exclusive);
    if (!found.conflict) continue;
    auto owner = std::make_shared<Owner>();
    owner->handle = std::move(found.conflict->lock_owner);
    return Held{found.conflict->range, found.conflict->exclusive, std::move(owner)};
  }
  return std::nullopt;
}

void Sharing::end(const std::vector<state::ClientId>& lapsed) {
  for (const state::ClientId client : lapsed) gate_.end_lapsed(client);
}

std::optional<state::ConflictingLock> Sharing::conflict(const state::FileKey& file,
                                                        const state::Range& range,
                                                        bool exclusive) const {
  const auto key = key_of(file);
  if (!key) return std::nullopt;
  const auto held = table_.test({*key, nobody(), range, exclusive});
  if (!held) return std::nullopt;
  return state::ConflictingLock{held->range, held->exclusive, 0, held->owner->handle};
}

bool Sharing::share_conflict(const state::FileKey& file, std::uint32_t access,
                             std::uint32_t deny) const {
  const auto key = key_of(file);
  return key && table_.share_conflict(*key, access, deny);
}

void Sharing::freed(const state::FileKey* file) {
  if (file == nullptr) return recheck_(nullptr);
  if (const auto key = key_of(*file)) recheck_(&*key);
}

}  // namespace stag::nfs::lock
