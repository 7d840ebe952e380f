// Devices that are removed, and come back: what becomes of listeners and of what connections have
// there.
#include <gtest/gtest.h>

#include <cerrno>

#include "testing/verbs_fixture.h"

namespace stag::testing {
namespace {

class Removal : public VerbsTest {
 protected:
  Removal() { options.timeout = std::chrono::seconds(5); }
  // The connection that the listener has now, as if it was the first.
  void join_again() {
    if (active.connected()) active.destroy();
    if (passive.connected()) passive.destroy();
    active = Side();
    passive = Side();
    join_and_greet();
  }
  static std::uint64_t told(Reason reason) { return reason_counters().of(reason); }
  bool listens_again(std::uint64_t before) {
    return run_until([=] { return told(Reason::VerbsListensAgain) == before + 1; });
  }
};

TEST_F(Removal, is_over_for_a_listener_when_its_device_is_back) {
  join_and_greet();
  const Address at = listener->local_address();
  const std::uint64_t removed = told(Reason::VerbsDeviceRemoved);
  const std::uint64_t before = told(Reason::VerbsListensAgain);
  stub().remove_devices();
  ASSERT_TRUE(ended());
  EXPECT_NE(connect_reason(at), Reason::None);
  EXPECT_GE(told(Reason::VerbsDeviceRemoved), removed + 3) << "two connections and the listener";
  stub().restore_devices();
  ASSERT_TRUE(listens_again(before));
  EXPECT_EQ(listener->local_address(), at);
  join_again();
}

TEST_F(Removal, may_happen_more_than_once) {
  listen();
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t before = told(Reason::VerbsListensAgain);
    stub().remove_devices();
    settle();
    stub().restore_devices();
    ASSERT_TRUE(listens_again(before));
    join_again();
  }
}

TEST_F(Removal, leaves_a_listener_that_can_go) {
  listen();
  stub().remove_devices();
  settle();
  listener.reset();
  stub().restore_devices();
  settle();
}

TEST_F(Removal, is_no_matter_of_a_listener_at_every_address) {
  const auto everywhere = fabric().listen({"", 0}, {}, acceptor);
  ASSERT_TRUE(everywhere.ok());
  const std::uint64_t before = told(Reason::VerbsListensAgain);
  stub().remove_devices();
  settle();
  stub().restore_devices();
  EXPECT_EQ(connect_reason({"127.0.0.1", (*everywhere)->local_address().port}), Reason::None);
  EXPECT_EQ(told(Reason::VerbsListensAgain), before);
}

// Linux's rxe and siw wait for that.
TEST_F(Removal, has_the_device_closed) {
  join_and_greet();
  stub().remove_devices();
  EXPECT_EQ(stub().open_removed_devices(), 1u);
  ASSERT_TRUE(run_until([&] { return stub().open_removed_devices() == 0; }));
}

TEST_F(Removal, makes_the_listener_say_once_why_it_does_not_listen_yet) {
  listen();
  stub().remove_devices();
  const std::uint64_t before = told(Reason::VerbsAddressUnserved);
  ASSERT_TRUE(run_until([&] { return told(Reason::VerbsAddressUnserved) == before + 1; }));
  const std::uint64_t calls = stub().calls();
  ASSERT_TRUE(run_until([&] { return stub().calls() > calls + 10; })) << "it goes on trying";
  EXPECT_EQ(told(Reason::VerbsAddressUnserved), before + 1);
}

bool connection_events_wait = false;
decltype(fabric::VerbsFunctions::get_cm_event) get_cm_event;

int waiting_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) {
  if (!connection_events_wait) return get_cm_event(channel, event);
  errno = EAGAIN;
  return -1;
}

// The device itself says first that it is gone.
class RemovalByDevice : public FabricTest {
 protected:
  RemovalByDevice()
      : FabricTest(std::make_unique<VerbsHarness>(
            fabric::stub::rxe_like(), "127.0.0.1", [](fabric::VerbsFunctions& functions) {
              connection_events_wait = false;
              get_cm_event = std::exchange(functions.get_cm_event, waiting_get_cm_event);
            })) {}
  fabric::stub::StubNetwork& stub() { return static_cast<VerbsHarness&>(*harness).stub(); }
};

// rdma-core closes a removed device with the last id there; the stub notes what comes afterwards.
TEST_F(RemovalByDevice, is_told_to_connections_whose_ids_outlast_all_that_is_theirs_there) {
  join_and_greet();
  listener.reset();
  settle();
  connection_events_wait = true;
  stub().remove_devices();
  ASSERT_TRUE(ended());
  EXPECT_EQ(active.disconnected, Reason::VerbsDeviceRemoved);
}

}  // namespace
}  // namespace stag::testing
