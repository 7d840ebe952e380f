// A device chosen by its name, on a machine that has two.
#include <gtest/gtest.h>

#include "testing/fabric_contract/harness.h"
#include "testing/two_devices.h"

namespace stag::testing {
namespace {

class DeviceChoice : public FabricTest {
 protected:
  explicit DeviceChoice(const std::string& name = "second")
      : FabricTest(std::make_unique<TwoDevices>(name)) {
    auto made = static_cast<TwoDevices&>(*harness).any().listen({"127.0.0.1", 0}, {}, acceptor);
    if (made) listener = std::move(*made);
  }
  Reason connect_reason(const Address& address) {
    const auto outcome = connect(address);
    return outcome && !outcome->ok() ? outcome->error() : Reason::None;
  }
};

TEST_F(DeviceChoice, leads_a_connection_to_the_device_wherever_its_peer_is) {
  join_and_greet();
  EXPECT_EQ(active->peer_address().host, "127.0.0.1");
  EXPECT_EQ(active->local_address().host, "127.0.0.2");
}

TEST_F(DeviceChoice, leaves_it_to_RDMA_CM_where_no_device_is_named) {
  const auto chosen = harness->run(
      static_cast<TwoDevices&>(*harness).any().connect(listener->local_address(), options, {}));
  ASSERT_TRUE(chosen.has_value() && chosen->ok());
  EXPECT_EQ((**chosen)->local_address().host, "127.0.0.1");
}

TEST_F(DeviceChoice, listens_at_addresses_of_the_device_only) {
  EXPECT_TRUE(fabric().listen({"127.0.0.2", 0}, {}, acceptor).ok());
  const auto refused = fabric().listen({"127.0.0.1", 0}, {}, acceptor);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error(), Reason::VerbsDeviceElsewhere);
}

TEST_F(DeviceChoice, says_so_where_the_device_has_no_address_of_that_kind) {
  EXPECT_EQ(connect_reason({"192.0.2.7", 20049}), Reason::VerbsDeviceElsewhere);
}

// What the log says of requests that are turned down.
std::vector<std::string> turned_down;
void note(Reason reason, std::string_view, std::string_view detail) {
  if (reason == Reason::VerbsOtherDevice)
    turned_down.push_back(std::string(to_string(reason)) + " " + std::string(detail));
}

TEST_F(DeviceChoice, turns_down_what_reaches_a_listener_at_every_address_by_another_device) {
  turned_down.clear();
  set_trace_sink(note);
  const auto everywhere = fabric().listen({"", 0}, {}, acceptor);
  ASSERT_TRUE(everywhere.ok());
  const std::uint16_t port = (*everywhere)->local_address().port;
  fabric::Fabric& any = static_cast<TwoDevices&>(*harness).any();
  for (const std::string host : {"127.0.0.1", "127.0.0.2", "::1"}) {
    const auto outcome = harness->run(any.connect({host, port}, options, {}));
    ASSERT_TRUE(outcome.has_value());
    EXPECT_EQ(outcome->ok(), host != "127.0.0.1") << "which the first device serves";
    if (!outcome->ok()) {
      EXPECT_EQ(outcome->error(), Reason::ConnectionRejected);
    }
  }
  set_trace_sink(nullptr);
  EXPECT_EQ(turned_down, std::vector<std::string>{"VerbsOtherDevice first"});
  EXPECT_EQ(acceptor.requests, 2) << "nobody above hears of it";
}

class UnknownDeviceChoice : public DeviceChoice {
 protected:
  UnknownDeviceChoice() : DeviceChoice("third") {}
};

TEST_F(UnknownDeviceChoice, says_that_there_is_no_such_device) {
  EXPECT_EQ(connect_reason(listener->local_address()), Reason::VerbsDeviceElsewhere);
  EXPECT_FALSE(fabric().listen({"", 0}, {}, acceptor).ok());
}

}  // namespace
}  // namespace stag::testing
