// Ports that are listened at before there is a listener, as those of a successor whose predecessor
// ends.
#include "fabric/verbs/verbs_port.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "testing/verbs_fixture.h"

namespace stag::testing {
namespace {

using fabric::VerbsPort;

class DevicePort : public VerbsTest {
 protected:
  DevicePort() { options.timeout = std::chrono::seconds(5); }
  Result<std::shared_ptr<VerbsPort>, Reason> port() { return VerbsPort::listen(over(stub()), at_); }
  Reason rehearsed(const Address& at, const std::string& device = {}) {
    fabric::VerbsOptions with = over(stub());
    with.device = device;
    const auto done = VerbsPort::rehearse(with, at);
    return done ? Reason::None : done.error();
  }
  void begin_to_connect() {
    detach(connect_into(&fabric(), at_, options, {}, &outcome_));
    settle();
  }
  void listen_with(std::shared_ptr<VerbsPort> port) {
    serving_.adopt(std::move(port));
    auto made = serving_.listen(at_, {}, acceptor);
    ASSERT_TRUE(made.ok()) << to_string(made.error());
    listener = *std::move(made);
  }
  bool connected() {
    return run_until([&] { return outcome_.has_value(); }) && outcome_->ok();
  }

  const Address at_{"127.0.0.1", 20050};
  fabric::VerbsFabric serving_{static_cast<net::EpollLoop&>(loop()), over(stub())};
  std::optional<ConnectOutcome> outcome_;
};

TEST_F(DevicePort, keeps_who_connects_until_its_listener_is_there) {
  auto listening = port();
  ASSERT_TRUE(listening.ok());
  begin_to_connect();
  EXPECT_FALSE(outcome_.has_value());
  EXPECT_EQ(acceptor.requests, 0);
  listen_with(*std::move(listening));
  EXPECT_EQ(listener->local_address(), at_);
  EXPECT_TRUE(connected());
  EXPECT_EQ(acceptor.requests, 1);
}

TEST_F(DevicePort, goes_on_with_its_listener) {
  auto listening = port();
  ASSERT_TRUE(listening.ok());
  listen_with(*std::move(listening));
  join_and_greet();
  EXPECT_EQ(port().error(), Reason::AddressInUse);
  listener.reset();
  EXPECT_TRUE(port().ok());
}

// Requests that wait cannot follow their listener to the events of a fabric that has some.
TEST_F(DevicePort, wants_a_fabric_of_its_own) {
  listen();
  auto listening = port();
  ASSERT_TRUE(listening.ok());
  auto& used = static_cast<fabric::VerbsFabric&>(fabric());
  used.adopt(*std::move(listening));
  const auto made = used.listen(at_, {}, acceptor);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error(), Reason::VerbsFailed);
}

TEST_F(DevicePort, is_no_other_devices) {
  auto listening = port();
  ASSERT_TRUE(listening.ok());
  fabric::VerbsOptions other = over(stub());
  other.device = "other0";
  fabric::VerbsFabric choosy(static_cast<net::EpollLoop&>(loop()), other);
  choosy.adopt(*std::move(listening));
  const auto made = choosy.listen(at_, {}, acceptor);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error(), Reason::VerbsDeviceElsewhere);
}

TEST_F(DevicePort, turns_down_who_waits_when_it_goes) {
  auto listening = port();
  ASSERT_TRUE(listening.ok());
  begin_to_connect();
  listening->reset();
  ASSERT_TRUE(run_until([&] { return outcome_.has_value(); }));
  ASSERT_FALSE(outcome_->ok());
  EXPECT_EQ(outcome_->error(), Reason::ConnectionRefused);
}

TEST_F(DevicePort, can_be_rehearsed_whoever_has_it) {
  EXPECT_EQ(rehearsed(at_), Reason::None);
  const auto taken = port();
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(rehearsed(at_), Reason::None);
  EXPECT_EQ(rehearsed({"192.0.2.1", 20050}), Reason::VerbsAddressUnserved);
  EXPECT_EQ(rehearsed(at_, "other0"), Reason::VerbsDeviceElsewhere);
  for (const char* every : {"0.0.0.0", "::"}) {
    EXPECT_EQ(rehearsed({every, 20050}), Reason::None) << every;
    EXPECT_EQ(rehearsed({every, 20050}, "other0"), Reason::VerbsDeviceElsewhere) << every;
  }
  stub().forbid(true);
  EXPECT_EQ(rehearsed(at_), Reason::VerbsNotPermitted);
}

// So many requests are refused.
int refusals = 0;
decltype(fabric::VerbsFunctions::connect) served_connect;

int refused_connect(rdma_cm_id* id, rdma_conn_param* wishes) {
  if (refusals == 0) return served_connect(id, wishes);
  --refusals;
  errno = ECONNREFUSED;
  return -1;
}

class PortBetweenServers : public FabricTest {
 protected:
  PortBetweenServers()
      : FabricTest(std::make_unique<VerbsHarness>(
            fabric::stub::siw_like(), "127.0.0.1", [](fabric::VerbsFunctions& functions) {
              served_connect = std::exchange(functions.connect, refused_connect);
            })) {}
};

TEST_F(PortBetweenServers, is_asked_again) {
  refusals = 2;
  join_and_greet();
  EXPECT_EQ(refusals, 0);
}

TEST_F(PortBetweenServers, is_not_asked_for_long) {
  listen();
  refusals = 1000;
  const auto outcome = connect(listener->local_address());
  ASSERT_TRUE(outcome && !outcome->ok());
  EXPECT_EQ(outcome->error(), Reason::ConnectionRefused);
  EXPECT_EQ(refusals, 997);
  refusals = 0;
}

}  // namespace
}  // namespace stag::testing
