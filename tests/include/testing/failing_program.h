// A program whose handlers throw.
#pragma once

#include <new>
#include <stdexcept>

#include "rpc/program.h"
#include "testing/store_program.h"

namespace stag::testing {

enum class Failing : std::uint32_t {
  Not,
  BeforeTheTask,  // the handler is no coroutine itself
  AtOnce,         // before the first suspension
  Later,          // after it
  WithAnInt,      // nothing that derives from std::exception
  WithoutMemory,
  Count,
};

inline constexpr std::uint32_t kFailingProgram = 0x20000088;

// Takes a Failing and returns it.
template <std::uint32_t Number>
struct FailingProcedure : store::INCREMENT {
  static constexpr std::uint32_t program = kFailingProgram, version = 1, number = Number;
};
using FAIL = FailingProcedure<1>;
using FAIL_ONCE = FailingProcedure<2>;  // must not run twice

inline constexpr std::array kFailingTable{rpc::bind<FAIL>(), rpc::bind<FAIL_ONCE>().once_only()};
inline constexpr rpc::Binding kFailingBinding{kFailingTable};

inline Task<std::uint32_t> fail(Loop& loop, Failing how) {
  if (how == Failing::AtOnce) throw std::runtime_error("the handler's own words");
  if (how == Failing::WithAnInt) throw 42;
  if (how == Failing::WithoutMemory) throw std::bad_alloc();
  co_await resume_on(loop);
  if (how == Failing::Later) throw std::runtime_error("the handler's own words");
  co_return static_cast<std::uint32_t>(how);
}

// `executed` counts and outlives the program.
inline rpc::Program failing_program(std::uint32_t& executed) {
  const auto handler = [&executed](rpc::CallContext& call, std::uint32_t argument) {
    ++executed;
    const auto how = static_cast<Failing>(argument);
    if (how == Failing::BeforeTheTask) throw std::runtime_error("the handler's own words");
    return fail(call.loop(), how);
  };
  rpc::Program program(kFailingProgram, 1, kFailingBinding);
  program.add<FAIL>(handler).add<FAIL_ONCE>(handler);
  return program;
}

}  // namespace stag::testing
