#include "endpoint/registered_memory.h"

#include <cstddef>
#include <utility>

#include "fabric/kept_ranges.h"

namespace stag::endpoint {

struct RegisteredMemory::State {
  State(std::shared_ptr<Loops> on, fabric::KeptRange of) : loops(std::move(on)), range(of) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  // What a provider still uses of the memory stays registered until it has done with it.
  ~State() {
    for (std::size_t i = 0; i < kept; ++i)
      finish_on(loops->at(i), [this] { fabric::KeptRanges::of_this_thread()->give_up(range); });
  }

  const std::shared_ptr<Loops> loops;
  const fabric::KeptRange range;
  std::size_t kept = 0;  // on the first so many loops
};

RegisteredMemory::RegisteredMemory(std::unique_ptr<State> state) : state_(std::move(state)) {}
RegisteredMemory::RegisteredMemory(RegisteredMemory&&) noexcept = default;
RegisteredMemory& RegisteredMemory::operator=(RegisteredMemory&&) noexcept = default;
RegisteredMemory::~RegisteredMemory() = default;

Result<RegisteredMemory, Reason> register_memory(std::shared_ptr<Loops> loops, MutableBytes memory,
                                                 MemoryAccess access) {
  const bool writable = access == MemoryAccess::ReadAndWrite;
  auto state = std::make_unique<RegisteredMemory::State>(std::move(loops),
                                                         fabric::KeptRange{memory, writable});
  for (; state->kept < state->loops->size(); ++state->kept) {
    const Reason reason = run_on(state->loops->at(state->kept), [&] {
      return fabric::KeptRanges::of_this_thread()->keep(state->range);
    });
    if (reason != Reason::None) return Failure{reason};
  }
  return RegisteredMemory(std::move(state));
}

}  // namespace stag::endpoint
