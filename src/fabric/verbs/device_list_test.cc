// What `stag devices` shows.
#include "fabric/verbs/device_list.h"

#include <gtest/gtest.h>

#include "fabric/verbs/stub/stub_network.h"

namespace stag::fabric {
namespace {

using stub::rxe_like;
using stub::siw_like;
using stub::StubNetwork;
using stub::StubOptions;

// The only device of a network with this one.
ListedDevice only(const StubNetwork& network) {
  auto listed = list_devices(*network.functions());
  EXPECT_TRUE(listed.ok() && listed->size() == 1);
  EXPECT_EQ(network.objects(), 0u);
  return listed.ok() && !listed->empty() ? listed->front() : ListedDevice{};
}

TEST(DeviceList, tells_what_a_device_can_do) {
  const StubNetwork network({rxe_like()});
  const ListedDevice rxe = only(network);
  EXPECT_EQ(rxe.name, "rxe0");
  EXPECT_EQ(rxe.unusable, Reason::None);
  EXPECT_TRUE(rxe.traits.windows && rxe.traits.shared_queue && !rxe.traits.iwarp);
  EXPECT_EQ(rxe.max_queue_pairs, 1024u);
  ASSERT_EQ(rxe.ports.size(), 1u);
  EXPECT_EQ(rxe.ports[0].state, "active");
  EXPECT_EQ(rxe.ports[0].link, "Ethernet");
  ASSERT_EQ(rxe.ports[0].gids.size(), 2u);
  EXPECT_EQ(rxe.ports[0].gids[0].text, "::ffff:127.0.0.1");
  EXPECT_EQ(rxe.ports[0].gids[0].type, "RoCE v2");
  EXPECT_EQ(rxe.ports[0].gids[1].text, "::1");
}

TEST(DeviceList, knows_an_iWARP_device_by_its_hardware_address) {
  const StubNetwork network({siw_like()});
  const ListedDevice siw = only(network);
  EXPECT_TRUE(siw.traits.iwarp && !siw.traits.windows && !siw.traits.shared_queue);
  ASSERT_EQ(siw.ports[0].gids.size(), 1u);
  EXPECT_EQ(siw.ports[0].gids[0].text, "00:00:00:00:00:01");
  EXPECT_EQ(siw.ports[0].gids[0].type, "iWARP");
}

TEST(DeviceList, believes_no_flag_of_windows_that_the_library_lacks) {
  const StubNetwork network({stub::bnxt_re_like()});
  const ListedDevice device = only(network);
  EXPECT_EQ(device.unusable, Reason::None);
  EXPECT_TRUE(!device.traits.windows && !device.traits.shared_queue);
}

TEST(DeviceList, says_that_there_is_no_device) {
  const StubNetwork network(std::vector<StubOptions>{});
  EXPECT_EQ(list_devices(*network.functions()).error(), Reason::VerbsDeviceMissing);
}

TEST(DeviceList, says_why_a_device_is_not_used) {
  const auto why = [](StubOptions options, bool forbidden = false) {
    StubNetwork network({std::move(options)});
    network.forbid(forbidden);
    return only(network).unusable;
  };
  EXPECT_EQ(why(rxe_like(), true), Reason::VerbsNotPermitted);
  StubOptions down = rxe_like();
  down.port_active = false;
  EXPECT_EQ(why(down), Reason::VerbsPortDown);
  StubOptions unaddressed = rxe_like();
  unaddressed.addresses = {"fe80::1"};
  EXPECT_EQ(why(unaddressed), Reason::VerbsAddressUnserved);
  StubOptions little_memory = rxe_like();
  little_memory.memlock = 64 * 1024;
  EXPECT_EQ(why(little_memory), Reason::VerbsMemlockTooLow);
}

TEST(DeviceList, survives_every_function_that_fails) {
  StubNetwork network({rxe_like()});
  const std::uint64_t before = network.calls();
  EXPECT_TRUE(list_devices(*network.functions()).ok());
  const std::uint64_t calls = network.calls() - before;
  for (std::uint64_t n = 1; n <= calls; ++n) {
    network.fail_call(n);
    const auto listed = list_devices(*network.functions());
    EXPECT_EQ(network.objects(), 0u) << network.failed_call();
    if (!listed || network.failed_call() == "ibv_query_gid_table") continue;
    if (network.failed_call() == "ibv_alloc_mw") {
      EXPECT_FALSE(listed->front().traits.windows);
      continue;
    }
    EXPECT_NE(listed->front().unusable, Reason::None) << network.failed_call();
  }
}

TEST(DeviceList, says_that_the_kernel_has_no_connection_manager) {
  const StubNetwork network({rxe_like()});
  VerbsFunctions functions = *network.functions();
  functions.create_event_channel = []() -> rdma_event_channel* {
    errno = ENOENT;
    return nullptr;
  };
  const auto listed = list_devices(functions);
  ASSERT_TRUE(listed.ok());
  EXPECT_EQ(listed->front().unusable, Reason::VerbsConnectionManagerMissing);
}

TEST(DeviceList, names_a_device_that_has_no_connections_of_that_kind) {
  const StubNetwork network({rxe_like()});
  VerbsFunctions functions = *network.functions();
  static decltype(functions.open_device) open = nullptr;
  open = functions.open_device;
  functions.open_device = [](ibv_device* device) {
    device->transport_type = IBV_TRANSPORT_UNSPECIFIED;
    return open(device);
  };
  EXPECT_EQ(list_devices(functions)->front().unusable, Reason::VerbsTransportUnsuitable);
}

}  // namespace
}  // namespace stag::fabric
