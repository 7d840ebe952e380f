// What a VerbsConnection exposes to its peer.
#include <sys/random.h>

#include <array>
#include <cerrno>

#include "fabric/verbs/counted_region.h"
#include "fabric/verbs/verbs_connection.h"
#include "fabric/verbs/verbs_reason.h"

namespace stag::fabric {
namespace {

// Of a range of no bytes: an access to none of them asks for no key.
constexpr std::uint32_t kNoBytesKey = 1;

// The eight bits of a window's key that are ours to choose; the device has chosen the others.
std::uint8_t random_octet() {
  thread_local std::array<std::uint8_t, 256> octets;
  thread_local std::size_t left = 0;
  if (left == 0) {
    // At most 256 bytes are given whole.
    if (::getrandom(octets.data(), octets.size(), 0) < 0) return 1;
    left = octets.size();
  }
  return octets[--left];
}

// Another than it had, so that a peer that still knows the old one has nothing.
std::uint32_t fresh_key(std::uint32_t old) {
  const std::uint32_t step = 1 + random_octet() % 255;
  return (old & ~std::uint32_t{0xff}) | ((old + step) & 0xff);
}

}  // namespace

Result<RemoteMemory, Reason> VerbsConnection::expose_source(Bytes memory) {
  return expose(const_cast<std::byte*>(memory.data()), memory.size(), false);
}

Result<RemoteMemory, Reason> VerbsConnection::expose_sink(MutableBytes memory) {
  return expose(memory.data(), memory.size(), true);
}

Result<RemoteMemory, Reason> VerbsConnection::expose(std::byte* memory, std::size_t size,
                                                     bool is_sink) {
  if (state_ != State::Open) return Failure{reason_};
  if (size > parameters_.max_registration) return Failure{Reason::RegistrationTooLong};
  if (size == 0) return RemoteMemory{kNoBytesKey, 0, 0};
  if (open_regions_ != nullptr)
    return is_sink ? open_regions_->expose_sink({memory, size})
                   : open_regions_->expose_source({memory, size});
  // Before anything is registered.
  registrations_.make_room();
  const bool windows = queue_pair_->traits().windows;
  if (ibv_mr* kept = queue_pair_->domain().kept_region(memory, size, is_sink))
    return open_window(kept, memory, size, is_sink);
  int access = is_sink ? IBV_ACCESS_LOCAL_WRITE : 0;
  if (windows)
    access |= IBV_ACCESS_MW_BIND;
  else
    access |= is_sink ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_READ;
  ibv_mr* region = register_memory(functions(), queue_pair_->domain().pd(), memory, size, access);
  if (region == nullptr) {
    // Says in the log which limit it was; the connection lives on.
    reason_of_registration_error(errno, size);
    return Failure{Reason::RegistrationsExhausted};
  }
  if (windows) return open_window(region, memory, size, is_sink);
  registrations_.insert(region->rkey, {.region = region});
  return RemoteMemory{region->rkey, static_cast<std::uint32_t>(size),
                      reinterpret_cast<std::uintptr_t>(memory)};
}

Result<RemoteMemory, Reason> VerbsConnection::open_window(ibv_mr* region, std::byte* memory,
                                                          std::size_t size, bool is_sink) {
  ibv_mw* window = queue_pair_->domain().take_window();
  if (window == nullptr) {
    queue_pair_->domain().give_back(region);
    return Failure{Reason::RegistrationsExhausted};
  }
  Work work;
  work.kind = WorkKind::Bind;
  work.window = window;
  work.key = fresh_key(window->rkey);
  work.binding.mr = region;
  work.binding.addr = reinterpret_cast<std::uintptr_t>(memory);
  work.binding.length = size;
  work.binding.mw_access_flags = is_sink ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_READ;
  registrations_.insert(work.key, {.region = region, .window = window});
  const RemoteMemory exposed{work.key, static_cast<std::uint32_t>(size), work.binding.addr};
  // Before every Send that may tell the handle, in the same queue.
  post(work);
  return exposed;
}

Revocation VerbsConnection::revoke(std::uint32_t handle) {
  if (open_regions_ != nullptr && open_regions_->take_back(handle)) return Revocation::Done;
  Registration* const known = registrations_.find(handle);
  if (known == nullptr || state_ == State::Ended) return Revocation::Done;
  if (known->window == nullptr) {
    forget(known);
    return Revocation::Done;
  }
  if (!std::exchange(known->revoking, true)) {
    Work work;
    work.kind = WorkKind::Invalidate;
    work.key = handle;
    post(work);
  }
  return Revocation::Pending;
}

// The peer has no access any more.
void VerbsConnection::forget(const Registration* registration) {
  queue_pair_->domain().give_back(registration->region);
  if (registration->window != nullptr) queue_pair_->domain().give_window(registration->window);
  registrations_.erase(registration);
}

inline RegisteredBlock* VerbsConnection::take_block(PostedWork& work) {
  while (work.blocks != nullptr) {
    RegisteredBlock* block = std::exchange(work.blocks, work.blocks->next);
    if (--block->users != 0) continue;  // shared, and so the only one
    if (block == filling_) filling_ = nullptr;
    return block;
  }
  return nullptr;
}

void VerbsConnection::release(PostedWork& work) {
  while (RegisteredBlock* block = take_block(work)) queue_pair_->domain().send_blocks().give(block);
  if (work.region != nullptr) queue_pair_->domain().give_back(std::exchange(work.region, nullptr));
  if (!work.source.empty()) work.source = Buffer();
}

void VerbsConnection::end_device_use() {
  bool keeps = false;
  for (std::size_t i = 0; i < posted_.size(); ++i)
    keeps |= posted_[i].region != nullptr && queue_pair_->domain().keeps(posted_[i].region);
  if (reason_ == Reason::VerbsDeviceRemoved) queue_pair_->on_last_receive();
  // What is registered for a request ends with its registration; what is kept does not. And of a
  // device that has failed nothing is expected.
  const bool retires = queue_pair_->awaits_last_receive() && !keeps && retired_ != nullptr &&
                       reason_ != Reason::VerbsFailed;
  if (!retires || !retired_->limit_time()) {
    retired_.reset();
    return queue_pair_->destroy();
  }
  for (std::size_t i = 0; i < posted_.size(); ++i)
    while (RegisteredBlock* block = take_block(posted_[i])) retired_->keep(block);
}

}  // namespace stag::fabric
