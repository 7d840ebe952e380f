#include "fabric/verbs/domain.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <new>

#include "fabric/verbs/verbs_reason.h"
#include "fabric/verbs/work_id.h"

namespace stag::fabric {
namespace {
constexpr std::size_t kSendBlock = 16 * 1024;
constexpr std::size_t kLeastReceive = 4096;
constexpr std::uint32_t kSharedReceives = 8192;
}  // namespace

Result<std::unique_ptr<SharedReceives>, Reason> SharedReceives::make(
    const VerbsFunctions& functions, ibv_pd* pd, std::size_t block_size, std::uint32_t capacity) {
  std::unique_ptr<SharedReceives> made(new SharedReceives(functions, pd, block_size, capacity));
  ibv_srq_init_attr wishes{};
  wishes.attr.max_wr = capacity;
  wishes.attr.max_sge = 1;
  made->queue_ = functions.create_srq(pd, &wishes);
  if (made->queue_ == nullptr) return Failure{reason_of_device_error(errno)};
  return made;
}

SharedReceives::~SharedReceives() {
  if (queue_ != nullptr) functions_.destroy_srq(queue_);
}

Result<Ok, Reason> SharedReceives::reserve(std::uint32_t count) {
  wanted_ += count;
  const auto blocks = pool_.reserve(target() > posted_ ? target() - posted_ : 0);
  if (!blocks) {
    wanted_ -= count;
    return Failure{blocks.error()};
  }
  fill();
  if (posted_ >= wanted_) return Ok{};
  wanted_ -= count;
  return Failure{Reason::VerbsDeviceFull};
}

std::uint32_t SharedReceives::post(std::uint32_t count) {
  std::array<ibv_recv_wr, kTogether> works;
  std::array<ibv_sge, kTogether> memory;
  std::uint32_t taken = 0;
  for (; taken < std::min(count, kTogether); ++taken) {
    RegisteredBlock* block = pool_.take();
    if (block == nullptr) break;
    block->shared = this;
    memory[taken] = {reinterpret_cast<std::uintptr_t>(block->data),
                     static_cast<std::uint32_t>(pool_.block_size()), block->key};
    works[taken] = {receive_id(block), nullptr, &memory[taken], 1};
    if (taken > 0) works[taken - 1].next = &works[taken];
  }
  if (taken == 0) return 0;
  ibv_recv_wr* bad = works.data();  // none, where a device does not say
  if (ibv_post_srq_recv(queue_, works.data(), &bad) == 0) return taken;
  const auto good = static_cast<std::uint32_t>(bad - works.data());
  while (taken > good) pool_.give(block_of(works[--taken].wr_id));
  return good;
}

void SharedReceives::fill() {
  while (posted_ < target()) {
    const std::uint32_t more = post(target() - posted_);
    if (more == 0) return;
    posted_ += more;
  }
}

void SharedReceives::consumed(RegisteredBlock* block) {
  pool_.give(block);
  --posted_;
  // What could not be posted before is tried again with the next one.
  if (posted_ <= wanted_) fill();
}

void SharedReceives::suspect_loss() {
  ++suspected_;
  watch_low();
}

void SharedReceives::watch_low() {
  low_ = wanted_ / 2;
  if (low_ == 0) return;
  ibv_srq_attr attributes{};
  attributes.srq_limit = low_;
  functions_.modify_srq(queue_, &attributes, IBV_SRQ_LIMIT);
}

void SharedReceives::on_low() {
  // By our count there are more than that, which the device has not.
  const std::uint32_t lost = std::min(suspected_, posted_ - std::min(posted_, low_));
  suspected_ -= lost;
  lost_ += lost;
  posted_ -= lost;
  // Where there is no memory the next one who reserves some tries again.
  if (pool_.reserve(target() - std::min(posted_, target()))) fill();
  // Else the device would say it again at once.
  if (suspected_ != 0 && posted_ > low_) watch_low();
}

Domain::Domain(const VerbsFunctions& functions, ibv_pd* pd, const DeviceTraits& traits)
    : functions_(functions),
      pd_(pd, PdDeleter{&functions}),
      traits_(traits),
      send_blocks_(functions, pd, kSendBlock) {}

Result<std::shared_ptr<Domain>, Reason> Domain::make(const VerbsFunctions& functions,
                                                     ibv_context* context,
                                                     const DeviceTraits& traits) {
  ibv_pd* pd = functions.alloc_pd(context);
  if (pd == nullptr) return Failure{reason_of_device_error(errno)};
  return std::shared_ptr<Domain>(new Domain(functions, pd, traits));
}

Domain::~Domain() {
  for (ibv_mw* window : windows_) ibv_dealloc_mw(window);
}

Result<SharedReceives*, Reason> Domain::shared_receives(std::size_t size, std::uint32_t count) {
  const std::size_t block = std::bit_ceil(std::max(size, kLeastReceive));
  const auto [first, last] = receives_.equal_range(block);
  for (auto known = first; known != last; ++known)
    if (known->second->has_room_for(count)) return known->second.get();
  const std::uint32_t capacity =
      std::min({traits_.max_shared_receives, traits_.max_completions, kSharedReceives});
  if (count > capacity) return Failure{Reason::VerbsDeviceFull};
  auto made = SharedReceives::make(functions_, pd(), block, capacity);
  if (!made) return Failure{made.error()};
  return receives_.emplace(block, *std::move(made))->second.get();
}

SharedReceives* Domain::receives_of(const ibv_srq* queue) {
  for (const auto& [size, receives] : receives_)
    if (receives->queue() == queue) return receives.get();
  return nullptr;
}

std::unique_ptr<SharedReceives> Domain::take_unused_receives() {
  const auto unused = std::find_if(receives_.begin(), receives_.end(),
                                   [](const auto& each) { return each.second->unused(); });
  if (unused == receives_.end()) return nullptr;
  std::unique_ptr<SharedReceives> taken = std::move(unused->second);
  receives_.erase(unused);
  return taken;
}

ibv_mw* Domain::take_window() {
  if (windows_.empty()) return ibv_alloc_mw(pd(), IBV_MW_TYPE_2);
  ibv_mw* window = windows_.back();
  windows_.pop_back();
  return window;
}

void Domain::give_window(ibv_mw* window) {
  try {
    windows_.push_back(window);
  } catch (const std::bad_alloc&) {
    ibv_dealloc_mw(window);
  }
}

}  // namespace stag::fabric
