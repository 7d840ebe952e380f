#include "fabric/sim/outbox.h"

#include <algorithm>

namespace stag::fabric {

Outbox::Id Outbox::post(SimOperation operation, bool queued) {
  const Id id = next_id_++;
  if (queued) {
    const Flow flow = operation.flow;
    auto lane = std::find_if(lanes_.begin(), lanes_.end(),
                             [flow](const Lane& other) { return other.flow == flow; });
    if (lane == lanes_.end()) lane = lanes_.insert(lanes_.end(), Lane{flow, {}});
    lane->waiting.push_back(id);
  }
  operations_.emplace(id, std::move(operation));
  return id;
}

std::optional<Outbox::Id> Outbox::depart(bool may_read, Random* shuffle) {
  const std::size_t first = shuffle != nullptr ? shuffle->below(lanes_.size()) : 0;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const std::size_t at = (first + i) % lanes_.size();
    const Id id = lanes_[at].waiting.front();
    SimOperation& operation = operations_.at(id);
    if (operation.kind == SimOperationKind::Read && !may_read) continue;
    operation.departed = true;
    if (operation.kind == SimOperationKind::Read) ++outstanding_reads_;
    lanes_[at].waiting.pop_front();
    Lane lane = std::move(lanes_[at]);
    lanes_.erase(lanes_.begin() + static_cast<std::ptrdiff_t>(at));
    if (!lane.waiting.empty()) lanes_.push_back(std::move(lane));
    return id;
  }
  return std::nullopt;
}

SimOperation* Outbox::find(Id id) {
  const auto found = operations_.find(id);
  return found == operations_.end() ? nullptr : &found->second;
}

std::optional<SimOperation> Outbox::take(Id id) {
  auto node = operations_.extract(id);
  if (node.empty()) return std::nullopt;
  if (!node.mapped().departed) unqueue(id, node.mapped());
  ended(node.mapped());
  return std::move(node.mapped());
}

std::optional<SimOperation> Outbox::take_oldest(Id limit) {
  if (operations_.empty() || operations_.begin()->first >= limit) return std::nullopt;
  return take(operations_.begin()->first);
}

void Outbox::hold_reads() {
  for (auto& [id, operation] : operations_) {
    if (operation.kind == SimOperationKind::Read && !operation.departed) unqueue(id, operation);
  }
}

bool Outbox::sending() const {
  return std::any_of(operations_.begin(), operations_.end(),
                     [](const auto& entry) { return entry.second.kind != SimOperationKind::Read; });
}

void Outbox::unqueue(Id id, const SimOperation& operation) {
  for (auto lane = lanes_.begin(); lane != lanes_.end(); ++lane) {
    if (lane->flow != operation.flow) continue;
    const auto waiting = std::find(lane->waiting.begin(), lane->waiting.end(), id);
    if (waiting != lane->waiting.end()) lane->waiting.erase(waiting);
    if (lane->waiting.empty()) lanes_.erase(lane);
    return;
  }
}

void Outbox::ended(const SimOperation& operation) {
  if (operation.kind == SimOperationKind::Read && operation.departed) --outstanding_reads_;
}

}  // namespace stag::fabric
