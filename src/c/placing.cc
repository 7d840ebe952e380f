#include "c/placing.h"

#include <memory>
#include <new>

#include "c/lent.h"
#include "c/memory.h"

namespace stag::c {
namespace {

bool is_usable(const stag_placement& given, std::size_t length, const endpoint::Loops& loops) {
  const Bytes memory = bytes_at(given.buffer, given.capacity);
  return given.capacity >= length &&
         memory_fault(given.memory, loops, memory.first(length), STAG_MEMORY_WRITE).empty();
}

}  // namespace

void* placed_context(const Buffer& bytes) {
  const auto* const placed = dynamic_cast<const Lent*>(bytes.owner());
  return placed == nullptr ? nullptr : placed->context();
}

Buffer Placer::ask(std::uint32_t procedure, Bytes arguments, std::size_t length,
                   const endpoint::Loops& loops) const noexcept {
  std::unique_ptr<Lent> placed;
  // First, so that what the program gives is not lost for want of memory.
  try {
    placed = std::make_unique<Lent>(length);
  } catch (const std::bad_alloc&) {
    return {};
  }
  stag_placement asked{};
  asked.size = sizeof asked;
  asked.procedure = procedure;
  asked.arguments = arguments.empty() ? nullptr : arguments.data();
  asked.arguments_length = arguments.size();
  asked.bulk_length = length;
  place_(context_, &asked);
  if (asked.buffer == nullptr || asked.release == nullptr) return {};
  if (!is_usable(asked, length, loops)) {
    asked.release(asked.release_context);
    return {};
  }
  placed->begin(asked.release, asked.release_context, asked.memory);
  return Buffer(placed.release(), bytes_at(asked.buffer, length));
}

Buffer Placer::copy(std::uint32_t procedure, Bytes arguments, const Rope& data,
                    const endpoint::Loops& loops) const {
  if (place_ == nullptr || data.empty()) return data.flatten();
  Buffer made = ask(procedure, arguments, data.size(), loops);
  const MutableBytes memory = made.exclusive();
  if (memory.empty()) return data.flatten();
  data.copy_to(memory);
  return made;
}

}  // namespace stag::c
