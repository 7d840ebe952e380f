// NULL, GETATTR, and READ and WRITE of 4 KiB on software iWARP and on fabric/verbs, 32 at a time,
// take nothing from the heap once they are under way: neither the client nor the server, which are
// both in this process.
#include <gtest/gtest.h>

#include "bench/worlds/iwarp_world.h"
#include "testing/counted_new.h"
#include "testing/verbs_world.h"

namespace stag::bench {
namespace {

// Heap allocations of both sides during 2000 calls.
std::size_t allocations_of(IwarpWorld& world, Operation operation) {
  const std::size_t before = testing::heap_allocations.load();
  EXPECT_TRUE(world.run(operation, 2000, 32));
  return testing::heap_allocations.load() - before;
}

TEST(NfsCallAllocation, is_none_on_software_iwarp_in_steady_state) {
  IwarpWorld world;
  for (const Operation operation :
       {Operation::Null, Operation::Getattr, Operation::Read, Operation::Write}) {
    SCOPED_TRACE(static_cast<int>(operation));
    (void)allocations_of(world, operation);
    // What starts and awaits the workers is not of the calls.
    EXPECT_LE(allocations_of(world, operation), 16u);
  }
}

TEST(Nfs4CallAllocation, is_none_for_READ_and_WRITE_in_steady_state) {
  IwarpWorld world(Versions::Nfs4);
  for (const Operation operation : {Operation::Read, Operation::Write}) {
    SCOPED_TRACE(static_cast<int>(operation));
    (void)allocations_of(world, operation);
    // What starts and awaits the workers is not of the calls.
    EXPECT_LE(allocations_of(world, operation), 16u);
  }
}

// Nor do the coroutines of the client library, whose frames come from the lists of the thread.
#ifndef STAG_SANITIZED  // clang's frames without optimisation are longer than the lists have
TEST(Nfs42CallAllocation, is_none_by_the_client_library_in_steady_state) {
  IwarpWorld world(Versions::Nfs42);
  for (const Operation operation : {Operation::Getattr, Operation::Read, Operation::Write}) {
    SCOPED_TRACE(static_cast<int>(operation));
    (void)allocations_of(world, operation);
    EXPECT_LE(allocations_of(world, operation), 16u);
  }
}
#endif

// On fabric/verbs, whether the data goes inline or by chunk; what the stub of a device does inside
// its own functions is not counted.
std::size_t of_the_stub = 0;

// Stands before a function of the stub, one for each.
template <class Tag, class Function>
struct Uncounted;
template <class Tag, class Result, class... Args>
struct Uncounted<Tag, Result (*)(Args...)> {
  static inline Result (*original)(Args...) = nullptr;
  static Result call(Args... args) {
    const std::size_t before = testing::heap_allocations.load();
    const Result result = original(args...);
    of_the_stub += testing::heap_allocations.load() - before;
    return result;
  }
};
template <class Tag, class Function>
void leave_out(Tag, Function& function) {
  Uncounted<Tag, Function>::original = function;
  function = Uncounted<Tag, Function>::call;
}

void leave_out_the_stub(fabric::VerbsFunctions& functions) {
  leave_out([] {}, functions.reg_mr);
  leave_out([] {}, functions.dereg_mr);
  leave_out([] {}, functions.get_cq_event);
  int count = 0;
  ibv_context** devices = functions.get_devices(&count);
  for (int i = 0; i < count; ++i) {
    ibv_context_ops& operations = devices[i]->ops;
    leave_out([] {}, operations.post_send);
    leave_out([] {}, operations.post_recv);
    leave_out([] {}, operations.post_srq_recv);
    leave_out([] {}, operations.poll_cq);
    leave_out([] {}, operations.req_notify_cq);
    leave_out([] {}, operations.alloc_mw);
  }
  functions.free_devices(devices);
}

std::size_t allocations_of(testing::VerbsWorld& world, Operation operation) {
  const std::size_t before = testing::heap_allocations.load() - of_the_stub;
  EXPECT_TRUE(world.run(operation, 2000, 32));
  return testing::heap_allocations.load() - of_the_stub - before;
}

void expect_no_allocations(fabric::stub::StubOptions device, std::uint32_t inline_size) {
  testing::VerbsWorld world(std::move(device), inline_size, leave_out_the_stub);
  for (const Operation operation :
       {Operation::Null, Operation::Getattr, Operation::Read, Operation::Write}) {
    SCOPED_TRACE(static_cast<int>(operation));
    (void)allocations_of(world, operation);
    // What starts and awaits the workers is not of the calls.
    EXPECT_LE(allocations_of(world, operation), 16u);
  }
}

TEST(VerbsCall, allocates_nothing_in_steady_state_for_nfs) {
  expect_no_allocations(fabric::stub::rxe_like(), 16384);
}

TEST(VerbsCall, allocates_nothing_in_steady_state_with_chunks_of_memory_windows) {
  expect_no_allocations(fabric::stub::rxe_like(), 1024);
}

TEST(VerbsCall, allocates_nothing_in_steady_state_with_chunks_of_registered_memory) {
  expect_no_allocations(fabric::stub::siw_like(), 1024);
}

}  // namespace
}  // namespace stag::bench
