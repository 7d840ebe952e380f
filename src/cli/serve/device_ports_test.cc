#include "cli/serve/device_ports.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "fabric/verbs/stub/stub_network.h"
#include "fabric/verbs/verbs_port.h"

namespace stag::cli {
namespace {

// A successor's, beside a predecessor that listens at the first of two addresses.
class DevicePortsTest : public ::testing::Test {
 protected:
  DevicePortsTest() {
    options_.hosts = {"127.0.0.1", "::1"};
    options_.fabrics = {"verbs"};
    options_.rdma_port = 20049;
  }
  ~DevicePortsTest() override { let_go(predecessor_); }
  // Where the devices are opened.
  template <class Port>
  void let_go(Port& port) {
    endpoint::run_on(loops_->at(0), [&] { port.reset(); });
  }
  void predecessor_listens() {
    fabric::VerbsOptions with;
    with.functions = devices_.functions();
    auto listening = endpoint::run_on(loops_->at(0), [&] {
      return fabric::VerbsPort::listen(with, {"127.0.0.1", 20049});
    });
    ASSERT_TRUE(listening.ok());
    predecessor_ = *std::move(listening);
  }
  bool takes(DevicePorts& ports, const std::string& host) {
    auto port = ports.take({host, 20049});
    const bool listened = port != nullptr;
    let_go(port);
    return listened;
  }

  fabric::stub::StubNetwork devices_{{fabric::stub::rxe_like()}};
  const std::shared_ptr<endpoint::Loops> loops_ = std::make_shared<endpoint::Loops>();
  ServeOptions options_;
  std::shared_ptr<fabric::VerbsPort> predecessor_;
};

TEST_F(DevicePortsTest, are_listened_at_as_soon_as_nobody_else_does) {
  predecessor_listens();
  DevicePorts ports(options_, loops_, devices_.functions());
  const auto rehearsed = ports.rehearse();
  EXPECT_TRUE(rehearsed.ok());
  ports.listen_where_free();
  EXPECT_FALSE(takes(ports, "127.0.0.1"));
  EXPECT_TRUE(takes(ports, "::1"));
  let_go(predecessor_);
  ports.listen_where_free();
  EXPECT_TRUE(takes(ports, "127.0.0.1"));
  EXPECT_FALSE(takes(ports, "127.0.0.1")) << "once";
}

TEST_F(DevicePortsTest, are_left_alone_before_they_were_rehearsed) {
  DevicePorts ports(options_, loops_, devices_.functions());
  ports.listen_where_free();
  EXPECT_FALSE(takes(ports, "127.0.0.1"));
}

TEST_F(DevicePortsTest, are_said_not_to_be_served_before_the_predecessor_goes) {
  options_.hosts = {"192.0.2.1"};
  DevicePorts ports(options_, loops_, devices_.functions());
  const auto rehearsed = ports.rehearse();
  ASSERT_FALSE(rehearsed.ok());
  EXPECT_NE(rehearsed.error().find("cannot listen at 192.0.2.1:20049 (--fabric verbs, "
                                   "--verbs-port): "),
            std::string::npos)
      << rehearsed.error();
}

TEST_F(DevicePortsTest, are_let_go_of_where_no_listener_wants_them) {
  {
    DevicePorts ports(options_, loops_, devices_.functions());
    ASSERT_TRUE(ports.rehearse().ok());
    ports.listen_where_free();
  }
  predecessor_listens();
}

}  // namespace
}  // namespace stag::cli
