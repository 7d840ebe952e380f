#include "fabric/verbs/registration_probe.h"

#include <gtest/gtest.h>

#include <vector>

#include "testing/verbs_harness.h"

namespace stag::fabric {
namespace {

TEST(RegistrationProbe, registers_at_the_device_of_an_address_and_leaves_nothing) {
  testing::StubHolder devices({stub::rxe_like()});
  const auto probe = RegistrationProbe::open(devices.network.functions(), {"127.0.0.1", 0});
  ASSERT_TRUE(probe.ok());
  std::vector<std::byte> memory(5000);
  EXPECT_TRUE(probe->once(memory));
  EXPECT_EQ(devices.network.remote_handles(), 0u);
}

TEST(RegistrationProbe, names_what_it_finds_no_device_by) {
  testing::StubHolder devices({stub::rxe_like()});
  const auto probe = RegistrationProbe::open(devices.network.functions(), {"192.0.2.1", 0});
  ASSERT_FALSE(probe.ok());
  EXPECT_EQ(probe.error(), Reason::VerbsAddressUnserved);
}

TEST(RegistrationProbe, says_where_the_device_refuses) {
  stub::StubOptions small = stub::rxe_like();
  small.memlock = 4096;
  testing::StubHolder devices({small});
  const auto probe = RegistrationProbe::open(devices.network.functions(), {"127.0.0.1", 0});
  ASSERT_TRUE(probe.ok());
  std::vector<std::byte> memory(100'000);
  EXPECT_FALSE(probe->once(memory));
}

TEST(RegistrationProbe, may_fail_at_each_call) {
  for (std::uint64_t n = 1; n <= 4; ++n) {
    testing::StubHolder devices({stub::rxe_like()});
    devices.network.fail_call(n);
    EXPECT_FALSE(RegistrationProbe::open(devices.network.functions(), {"127.0.0.1", 0}).ok()) << n;
  }
}

}  // namespace
}  // namespace stag::fabric
