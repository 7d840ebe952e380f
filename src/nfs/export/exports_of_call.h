// The exports that one Call has met so far, which it keeps to its end. Each is the one that was
// present when the Call met it first. Thread: the loop of the Call.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "nfs/export/export_table.h"

namespace stag::nfs {

class ExportsOfCall {
 public:
  explicit ExportsOfCall(const ExportTable& table) : table_(table) {}
  ExportsOfCall(ExportsOfCall&&) = default;

  // The export with this id, which the Call has met now. Null: there is none.
  const Export* meet(std::uint32_t id) {
    if (first_ == nullptr) first_ = table_.keep(id);
    if (first_ == nullptr || first_->id == id) [[likely]]
      return first_.get();
    return meet(share(id));
  }
  // The same of one that share() gave, perhaps before the Call met the one of this id.
  [[gnu::noinline]] const Export* meet(std::shared_ptr<const Export> shared) {
    if (shared == nullptr) return nullptr;
    if (const auto* const met = find(shared->id)) return met->get();
    if (first_ == nullptr) return (first_ = std::move(shared)).get();
    if (others_ == nullptr) others_ = std::make_unique<Others>();
    return others_->emplace_back(std::move(shared)).get();
  }
  // The one that the Call has met, or else the present one, which it does not keep.
  std::shared_ptr<const Export> share(std::uint32_t id) const {
    const std::shared_ptr<const Export>* const met = find(id);
    return met == nullptr ? table_.keep(id) : *met;
  }

 private:
  using Others = std::vector<std::shared_ptr<const Export>>;

  const std::shared_ptr<const Export>* find(std::uint32_t id) const {
    if (first_ != nullptr && first_->id == id) return &first_;
    if (others_ == nullptr) return nullptr;
    for (const auto& other : *others_)
      if (other->id == id) return &other;
    return nullptr;
  }

  const ExportTable& table_;
  std::shared_ptr<const Export> first_{};  // most Calls meet no other
  std::unique_ptr<Others> others_{};
};

}  // namespace stag::nfs
