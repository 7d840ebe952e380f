#include "c/memory.h"

using namespace stag;

namespace stag::c {
namespace {

constexpr std::uint32_t kRights = STAG_MEMORY_READ | STAG_MEMORY_WRITE;

bool lies_in(MutableBytes memory, Bytes part) {
  const auto at = reinterpret_cast<std::uintptr_t>(part.data());
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  return at >= begin && at - begin <= memory.size() && part.size() <= memory.size() - (at - begin);
}

}  // namespace

stag_error register_memory(const void* owner, const std::shared_ptr<endpoint::Loops>& loops,
                           MutableBytes memory, std::uint32_t access, stag_memory** registered) {
  if (registered == nullptr) return error_of(STAG_INVALID, "registered is null");
  if (memory.empty()) return error_of(STAG_INVALID, "the memory is null or empty");
  if (memory.size() > UINTPTR_MAX - reinterpret_cast<std::uintptr_t>(memory.data()))
    return error_of(STAG_INVALID, "the memory is longer than the address space");
  if (access == 0 || (access & ~kRights) != 0)
    return error_of(STAG_INVALID, "there is no such access");
  if (const auto wrong = wrong_thread()) return *wrong;
  auto made = std::make_unique<stag_memory>(owner, memory, access);
  auto kept = endpoint::KeptMemory::keep(loops, memory, (access & STAG_MEMORY_WRITE) != 0);
  if (!kept) return error_of(STAG_NO_MEMORY, info(kept.error()).text, to_string(kept.error()));
  made->kept = *std::move(kept);
  *registered = made.release();
  return no_error();
}

std::string_view memory_fault(const stag_memory* memory, const void* owner, Bytes bulk,
                              std::uint32_t access) {
  if (memory == nullptr) return {};
  if (memory->owner != owner) return "the memory is registered with another client or server";
  if ((memory->access & access) == 0) return "the memory is not registered for that access";
  if (!bulk.empty() && !lies_in(memory->memory, bulk))
    return "the bulk does not lie in its registered memory";
  return {};
}

}  // namespace stag::c

int stag_memory_release(stag_memory* registered) {
  return c::guard(nullptr, [registered] {
    if (registered == nullptr) return c::no_error();
    if (const auto wrong = c::wrong_thread()) return *wrong;
    if (registered->uses.load(std::memory_order_acquire) != 0)
      return c::error_of(STAG_BUSY, "a call or a reply uses the memory");
    delete registered;
    return c::no_error();
  });
}
