// A device chosen by its name, on a machine that has two.
#include <gtest/gtest.h>

#include "testing/verbs_fixture.h"

namespace stag::testing {
namespace {

fabric::stub::StubOptions device(std::string name, std::vector<std::string> addresses) {
  fabric::stub::StubOptions device = fabric::stub::rxe_like();
  device.name = std::move(name);
  device.addresses = std::move(addresses);
  return device;
}

// The first device serves 127.0.0.1, the second one 127.0.0.2 and ::1.
class TwoDevices final : private StubHolder, public EpollHarness {
 public:
  explicit TwoDevices(const std::string& name)
      : StubHolder({device("first", {"127.0.0.1"}), device("second", {"127.0.0.2", "::1"})}),
        EpollHarness("127.0.0.1"),
        any_(loop(), over(network)),
        named_(loop(), named(name)) {}

  fabric::Fabric& fabric() override { return named_; }
  fabric::Fabric& any() { return any_; }

 private:
  fabric::VerbsOptions named(const std::string& name) {
    fabric::VerbsOptions options = over(network);
    options.device = name;
    options.local_addresses = [] {
      return std::vector<Address>{{"192.0.2.1", 0}, {"127.0.0.1", 0}, {"127.0.0.2", 0}, {"::1", 0}};
    };
    return options;
  }
  fabric::VerbsFabric any_, named_;
};

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
