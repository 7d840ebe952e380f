#include "nfs/lock/sharing.h"

namespace stag::nfs::lock {

namespace {

// An owner that has nothing in the table.
const OwnerPtr& nobody() {
  static const OwnerPtr kNobody = std::make_shared<Owner>();
  return kNobody;
}

}  // namespace

Sharing::Sharing(state::Gate& gate, std::mutex& mutex, const LockTable& table, Recheck recheck)
    : gate_(gate),
      files_(*gate.files()),
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

bool Sharing::in_the_way(const state::Verdict& verdict) {
  if (verdict.kind == state::Verdict::Kind::Lapsed) lapsed_.push_back(verdict.who);
  return !verdict.granted();
}

bool Sharing::conflicts(const LockRequest& request) {
  return in_the_way(files_.range_conflict(request.file, request.range, request.exclusive).verdict);
}

bool Sharing::conflicts(const FileKey& file, const Share& share) {
  return in_the_way(files_.share_conflict(file, share.access, share.denied));
}

std::optional<Held> Sharing::holder(const LockRequest& request) const {
  auto found = files_.range_conflict(request.file, request.range, request.exclusive);
  if (!found.conflict) return std::nullopt;
  auto owner = std::make_shared<Owner>();
  owner->handle = std::move(found.conflict->lock_owner);
  return Held{found.conflict->range, found.conflict->exclusive, std::move(owner)};
}

void Sharing::end(const std::vector<state::ClientId>& lapsed) {
  for (const state::ClientId client : lapsed) gate_.end_lapsed(client);
}

std::optional<state::ConflictingLock> Sharing::conflict(const FileKey& file, const Range& range,
                                                        bool exclusive) const {
  const auto held = table_.test({file, nobody(), range, exclusive});
  if (!held) return std::nullopt;
  return state::ConflictingLock{held->range, held->exclusive, 0, held->owner->handle};
}

bool Sharing::share_conflict(const FileKey& file, std::uint32_t access, std::uint32_t deny) const {
  return table_.share_conflict(file, access, deny);
}

}  // namespace stag::nfs::lock
