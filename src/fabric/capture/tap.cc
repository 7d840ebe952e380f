#include "fabric/capture/tap.h"

#include <algorithm>
#include <utility>

namespace stag::fabric::capture {

void Tap::add(std::shared_ptr<Recorder> recorder, std::optional<IpNetwork> peer) {
  const BriefLock lock(mutex_);
  entries_.push_back({last_ + 1, peer, std::move(recorder)});
  newest_.store(++last_, std::memory_order_relaxed);
}

void Tap::remove(const Recorder& recorder) {
  std::shared_ptr<Recorder> removed;  // ends behind the lock
  const BriefLock lock(mutex_);
  const auto found =
      std::ranges::find(entries_, &recorder, [](const Entry& each) { return each.recorder.get(); });
  if (found == entries_.end()) return;
  removed = std::move(found->recorder);
  entries_.erase(found);
  if (entries_.empty()) newest_.store(0, std::memory_order_relaxed);
}

void Tap::take(Bytes frame, const IpAddress& peer, std::uint64_t after) noexcept {
  const BriefLock lock(mutex_);
  for (const Entry& each : entries_) {
    if (each.number <= after || !each.wants(peer)) continue;
    try {
      each.recorder->take(frame);
    } catch (...) {
      each.recorder->lose();
    }
  }
}

void Tap::lose(const IpAddress& peer) noexcept {
  const BriefLock lock(mutex_);
  for (const Entry& each : entries_)
    if (each.wants(peer)) each.recorder->lose();
}

}  // namespace stag::fabric::capture
