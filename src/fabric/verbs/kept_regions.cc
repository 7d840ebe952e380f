#include "fabric/verbs/kept_regions.h"

#include <algorithm>
#include <cerrno>

#include "fabric/verbs/verbs_reason.h"

namespace stag::fabric {

KeptRegions::KeptRegions(const VerbsFunctions& functions, ibv_pd* pd)
    : functions_(functions), pd_(pd) {
  for (const KeptRange* range : table_->all()) kept_.push_back({.range = range});
  table_->add(*this);
}

KeptRegions::~KeptRegions() {
  table_->remove(*this);
  for (const Kept& kept : kept_)
    if (kept.region != nullptr) deregister_memory(functions_, kept.region);
}

ibv_mr* KeptRegions::use(const std::byte* memory, std::size_t size, bool writable) {
  for (Kept& kept : kept_) {
    if (kept.range == nullptr || !kept.range->covers(memory, size)) continue;
    if (writable && !kept.range->writable) continue;
    if (kept.region == nullptr && (kept.refused || enroll(kept) != Reason::None)) continue;
    ++kept.uses;
    return kept.region;
  }
  return nullptr;
}

bool KeptRegions::has(const ibv_mr* region) const {
  return std::any_of(kept_.begin(), kept_.end(),
                     [region](const Kept& kept) { return kept.region == region; });
}

bool KeptRegions::end_use(ibv_mr* region) noexcept {
  const auto found = std::find_if(kept_.begin(), kept_.end(),
                                  [region](const Kept& kept) { return kept.region == region; });
  if (found == kept_.end()) return false;
  if (--found->uses == 0 && found->range == nullptr)
    end(static_cast<std::size_t>(found - kept_.begin()));
  return true;
}

Reason KeptRegions::on_kept(const KeptRange& range) {
  kept_.push_back({.range = &range});
  return enroll(kept_.back());
}

// A window, or a Write that is still on its way, may need the region when its range has gone.
void KeptRegions::on_given_up(const KeptRange& range) noexcept {
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    if (kept_[i].range != &range) continue;
    kept_[i].range = nullptr;
    if (kept_[i].uses == 0) end(i);
    return;
  }
}

Reason KeptRegions::enroll(Kept& kept) const {
  const int access = IBV_ACCESS_MW_BIND | (kept.range->writable ? IBV_ACCESS_LOCAL_WRITE : 0);
  const MutableBytes memory = kept.range->memory;
  kept.region = register_memory(functions_, pd_, memory.data(), memory.size(), access);
  kept.refused = kept.region == nullptr;
  return kept.refused ? reason_of_registration_error(errno, memory.size()) : Reason::None;
}

void KeptRegions::end(std::size_t index) noexcept {
  if (kept_[index].region != nullptr) deregister_memory(functions_, kept_[index].region);
  kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(index));
}

}  // namespace stag::fabric
