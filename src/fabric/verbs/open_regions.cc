#include "fabric/verbs/open_regions.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "fabric/verbs/counted_region.h"
#include "fabric/verbs/verbs_reason.h"

namespace stag::fabric {

Result<OpenRegions::Region*, Reason> OpenRegions::take(FreeLists& lists, std::size_t size,
                                                       int access) try {
  const std::size_t bits = std::max<std::size_t>(std::bit_width(size - 1), kLeastBits);
  if (bits - kLeastBits >= kSizes) return Failure{Reason::RegistrationTooLong};
  Region** const list = &lists[bits - kLeastBits];
  if (Region* const free = *list; free != nullptr) {
    *list = free->next;
    free->used = true;
    return free;
  }
  const std::size_t whole = std::size_t{1} << bits;
  // Zeros: what lay there before is not the peer's.
  auto memory = std::make_unique<std::byte[]>(whole);
  std::unique_ptr<ibv_mr, Deregister> registered(
      register_memory(functions_, pd_, memory.get(), whole, access), {&functions_});
  if (registered == nullptr) {
    reason_of_registration_error(errno, whole);
    return Failure{Reason::RegistrationsExhausted};
  }
  const std::uint32_t handle = registered->rkey;
  Region made{std::move(memory), std::move(registered), {}, list, nullptr, true};
  return &regions_.emplace(handle, std::move(made)).first->second;
} catch (const std::bad_alloc&) {
  return Failure{Reason::OutOfMemory};
}

RemoteMemory OpenRegions::name_of(const Region& region, std::size_t size) {
  return {region.region->rkey, static_cast<std::uint32_t>(size),
          reinterpret_cast<std::uintptr_t>(region.memory.get())};
}

Result<RemoteMemory, Reason> OpenRegions::expose_source(Bytes memory) {
  const auto region = take(sources_, memory.size(), IBV_ACCESS_REMOTE_READ);
  if (!region) return Failure{region.error()};
  std::memcpy((*region)->memory.get(), memory.data(), memory.size());
  return name_of(**region, memory.size());
}

Result<RemoteMemory, Reason> OpenRegions::expose_sink(MutableBytes memory) {
  const auto region = take(sinks_, memory.size(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  if (!region) return Failure{region.error()};
  // What the peer leaves out is nobody's: neither an earlier call's, nor what lies in `memory` now.
  std::memset((*region)->memory.get(), 0, memory.size());
  (*region)->sink = memory;
  return name_of(**region, memory.size());
}

bool OpenRegions::take_back(std::uint32_t handle) {
  const auto known = regions_.find(handle);
  if (known == regions_.end() || !known->second.used) return false;
  Region& region = known->second;
  if (!region.sink.empty())
    std::memcpy(region.sink.data(), region.memory.get(), region.sink.size());
  region.sink = {};
  region.used = false;
  region.next = std::exchange(*region.free_list, &region);
  return true;
}

}  // namespace stag::fabric
