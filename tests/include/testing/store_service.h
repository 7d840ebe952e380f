// The store program served: slots of bytes in memory, and counters of what ran.
#pragma once

#include <map>
#include <mutex>

#include "rpc/program.h"
#include "testing/store_program.h"

namespace stag::testing::store {

struct State {
  std::mutex mutex;
  std::map<std::uint32_t, Rope> slots;
  std::uint32_t total = 0;     // of ADD_ONCE
  std::uint32_t executed = 0;  // handlers run
};

inline Task<PutResults> put(State* state, PutArgs args) {
  const std::lock_guard lock(state->mutex);
  ++state->executed;
  PutResults results;
  results.stored = static_cast<std::uint32_t>(args.data.size());
  results.checksum = checksum(args.data) == args.checksum ? args.checksum : 0;
  state->slots[args.slot] = std::move(args.data);
  co_return results;
}

inline Task<GetResults> get(State* state, GetArgs args) {
  const std::lock_guard lock(state->mutex);
  ++state->executed;
  GetResults results;
  auto slot = state->slots.find(args.slot);
  if (slot == state->slots.end()) {
    results.status = 1;
  } else {
    const Rope& bytes = slot->second;
    results.data = bytes.slice(0, std::min<std::size_t>(bytes.size(), args.count));
    results.checksum = checksum(results.data);
  }
  co_return results;
}

inline Task<std::uint32_t> add_once(State* state, std::uint32_t value) {
  const std::lock_guard lock(state->mutex);
  ++state->executed;
  co_return state->total += value;
}

// `state` outlives the program.
inline rpc::Program make_program(State& state) {
  rpc::Program program(kProgram, kVersion, kBinding);
  State* shared = &state;
  program.add<INCREMENT>(
      [](rpc::CallContext&, std::uint32_t value) -> Task<std::uint32_t> { co_return value + 1; });
  program.add<PUT>(
      [shared](rpc::CallContext&, PutArgs args) { return put(shared, std::move(args)); });
  program.add<GET>([shared](rpc::CallContext&, GetArgs args) { return get(shared, args); });
  program.add<ADD_ONCE>(
      [shared](rpc::CallContext&, std::uint32_t value) { return add_once(shared, value); });
  program.add<REVERSE>([](rpc::CallContext&, std::string text) -> Task<std::string> {
    co_return std::string(text.rbegin(), text.rend());
  });
  return program;
}

}  // namespace stag::testing::store
