// Two fabrics of one process at one device, which tells what happens to it once.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>

#include "testing/verbs_fixture.h"

namespace stag::testing {
namespace {

// A connection of each fabric, all on one loop.
class TwoFabrics : public VerbsTest {
 protected:
  explicit TwoFabrics(fabric::stub::StubOptions device = fabric::stub::rxe_like())
      : VerbsTest(std::move(device)),
        second_(static_cast<VerbsHarness&>(*harness).loop(), over(stub())) {}

  void join_by_the_second() {
    acceptor_of_second_.answer = acceptor.answer;
    auto made = second_.listen(harness->any_address(), {}, acceptor_of_second_);
    ASSERT_TRUE(made.ok());
    listener_of_second_ = std::move(*made);
    std::optional<ConnectOutcome> outcome;
    detach(connect_into(&second_, listener_of_second_->local_address(), options, {}, &outcome));
    ASSERT_TRUE(run_until([&] { return outcome && !acceptor_of_second_.arrived.empty(); }));
    ASSERT_TRUE(outcome->ok());
    active_of_second_.take(std::move(**outcome));
    passive_of_second_.take(std::move(acceptor_of_second_.arrived.front()));
    active_of_second_.start();
    passive_of_second_.start();
    active_of_second_->send(Rope::borrow(bytes_of("hello")), std::nullopt, 0, fabric::kNoToken);
    ASSERT_TRUE(run_until([&] { return passive_of_second_.messages.size() == 1; }));
  }
  void expect_all_hear_of(ibv_event_type failure, Reason as) {
    join_and_greet();
    join_by_the_second();
    stub().tell_of_device(failure);
    settle();
    for (const Side* side : {&active, &passive, &active_of_second_, &passive_of_second_})
      EXPECT_EQ(side->disconnected, as);
  }

  fabric::VerbsFabric second_;
  TestAcceptor acceptor_of_second_;
  std::unique_ptr<fabric::Listener> listener_of_second_;
  Side active_of_second_, passive_of_second_;
};

class TwoFabricsOnSiw : public TwoFabrics {
 protected:
  TwoFabricsOnSiw() : TwoFabrics(fabric::stub::siw_like()) {}
};

TEST_F(TwoFabrics, both_hear_that_the_device_has_failed) {
  expect_all_hear_of(IBV_EVENT_DEVICE_FATAL, Reason::VerbsDeviceRemoved);
}

TEST_F(TwoFabrics, both_hear_that_completions_are_lost) {
  expect_all_hear_of(IBV_EVENT_CQ_ERR, Reason::VerbsFailed);
}

TEST_F(TwoFabricsOnSiw, both_hear_that_completions_are_lost) {
  expect_all_hear_of(IBV_EVENT_CQ_ERR, Reason::VerbsFailed);
}

TEST_F(TwoFabrics, leave_nothing_of_a_connection_that_has_ended) {
  listen();
  join_by_the_second();
  const std::size_t before = stub().objects();
  join_and_greet();
  active->close(Reason::Shutdown);
  ASSERT_TRUE(ended());
  active.destroy();
  passive.destroy();
  settle();
  EXPECT_EQ(stub().objects(), before) << "a queue pair waits for its last receive";
}

}  // namespace
}  // namespace stag::testing
