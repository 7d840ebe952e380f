#include "c/placing.h"

#include <memory>
#include <new>

#include "base/pooled.h"
#include "c/memory.h"

namespace stag::c {
namespace {

class Placed final : public Storage, public Pooled {
 public:
  explicit Placed(std::size_t length) : Storage(length) {}
  void begin(const stag_placement& given) {
    release_ = given.release;
    context_ = given.release_context;
    memory_ = given.memory;
    begin_use(memory_);
  }
  void* context() const { return context_; }

 private:
  void release() noexcept override {
    const auto give_back = release_;
    void* const context = context_;
    end_use(memory_);
    delete this;
    if (give_back != nullptr) give_back(context);
  }
  void (*release_)(void*) = nullptr;  // null: there is nothing to give back
  void* context_ = nullptr;
  stag_memory* memory_ = nullptr;
};

bool is_usable(const stag_placement& given, std::size_t length, const endpoint::Loops& loops) {
  const Bytes memory = bytes_at(given.buffer, given.capacity);
  return given.capacity >= length &&
         memory_fault(given.memory, loops, memory.first(length), STAG_MEMORY_WRITE).empty();
}

}  // namespace

void* placed_context(const Buffer& bytes) {
  const auto* const placed = dynamic_cast<const Placed*>(bytes.owner());
  return placed == nullptr ? nullptr : placed->context();
}

Buffer Placer::ask(std::uint32_t procedure, Bytes arguments, std::size_t length,
                   const endpoint::Loops& loops) const noexcept {
  std::unique_ptr<Placed> placed;
  // First, so that what the program gives is not lost for want of memory.
  try {
    placed = std::make_unique<Placed>(length);
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
  placed->begin(asked);
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
