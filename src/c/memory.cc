#include "c/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

using namespace stag;

namespace stag::c {
namespace {

constexpr std::uint32_t kRights = STAG_MEMORY_READ | STAG_MEMORY_WRITE;

bool lies_in(MutableBytes memory, Bytes part) {
  const auto at = reinterpret_cast<std::uintptr_t>(part.data());
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  return at >= begin && at - begin <= memory.size() && part.size() <= memory.size() - (at - begin);
}

// MS_ASYNC does nothing to memory that is mapped.
bool is_mapped(MutableBytes memory) {
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uintptr_t inside = begin % page;
  return ::msync(memory.data() - inside, memory.size() + inside, MS_ASYNC) == 0 || errno != ENOMEM;
}

}  // namespace

stag_error registration_error(Reason reason) {
  const bool lacks_memory = reason == Reason::OutOfMemory || reason == Reason::VerbsMemlockTooLow;
  const stag_status status = lacks_memory ? STAG_NO_MEMORY : STAG_FAILED;
  return error_of(status, info(reason).text, to_string(reason));
}

stag_error register_memory(const std::shared_ptr<endpoint::Loops>& loops, MutableBytes memory,
                           std::uint32_t access, stag_memory** registered) {
  if (registered == nullptr) return error_of(STAG_INVALID, "registered is null");
  if (memory.empty()) return error_of(STAG_INVALID, "the memory is null or empty");
  if (memory.size() > UINTPTR_MAX - reinterpret_cast<std::uintptr_t>(memory.data()))
    return error_of(STAG_INVALID, "the memory is longer than the address space");
  if (!is_mapped(memory)) return error_of(STAG_INVALID, "the memory is not mapped");
  if (access == 0 || (access & ~kRights) != 0)
    return error_of(STAG_INVALID, "there is no such access");
  if (const auto wrong = wrong_thread()) return *wrong;
  auto made = std::make_unique<stag_memory>(loops, memory, access);
  const bool placed = (access & STAG_MEMORY_WRITE) != 0;
  auto kept = endpoint::register_memory(
      loops, memory, placed ? endpoint::MemoryAccess::ReadAndWrite : endpoint::MemoryAccess::Read);
  if (!kept) return registration_error(kept.error());
  made->kept.emplace(*std::move(kept));
  *registered = made.release();
  return no_error();
}

std::string_view memory_fault(const stag_memory* memory, const endpoint::Loops& loops, Bytes bulk,
                              std::uint32_t access) {
  if (memory == nullptr) return {};
  if (memory->loops.get() != &loops)
    return "the memory is registered with another client or server";
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
