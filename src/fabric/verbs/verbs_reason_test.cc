// What errors of rdma-core mean, and what a person is told to do about them.
#include "fabric/verbs/verbs_reason.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "fabric/verbs/stub/stub_network.h"

namespace stag::fabric {
namespace {

// The sentence of each reason why no connection comes up, and what it names: one thing to look at.
TEST(VerbsReason, is_one_sentence_that_names_what_to_do) {
  struct Case {
    Reason reason;
    std::string_view what, remedy;
  };
  for (const Case& each :
       {Case{Reason::VerbsLibraryMissing, "rdma-core, which is not installed", "install"},
        Case{Reason::VerbsDeviceMissing, "no RDMA device", "rdma link"},
        Case{Reason::VerbsConnectionManagerMissing, "RDMA-CM is not there", "modprobe rdma_ucm"},
        Case{Reason::VerbsTransportUnsuitable, "no reliable connections", "EFA"},
        Case{Reason::VerbsNotPermitted, "no permission", "/dev/infiniband"},
        Case{Reason::VerbsMemlockTooLow, "memory cannot be locked", "raise RLIMIT_MEMLOCK"},
        Case{Reason::VerbsAddressUnserved, "no RDMA device serves that address",
             "GID table lacks it; see `rdma link`"},
        Case{Reason::VerbsPortDown, "port is down", "check the cable"},
        Case{Reason::VerbsDeviceElsewhere, "the RDMA device asked for", "stag devices"},
        Case{Reason::VerbsDeviceFull, "no queues or memory keys left", "fewer connections"},
        Case{Reason::HostUnreachable, "no route to the host", "check the network"}}) {
    const std::string_view text = info(each.reason).text;
    EXPECT_NE(text.find(each.what), std::string_view::npos) << text;
    EXPECT_NE(text.find(each.remedy), std::string_view::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string_view::npos);
  }
}

TEST(VerbsReason, is_no_route_and_no_timeout_for_an_address_without_a_device_or_GID) {
  const stub::StubNetwork network({stub::rxe_like()});
  const auto why = [&](rdma_cm_event_type type, int status) {
    return reason_of_setup(*network.functions(), nullptr, type, status, {});
  };
  for (const auto type : {RDMA_CM_EVENT_ADDR_ERROR, RDMA_CM_EVENT_ROUTE_ERROR}) {
    EXPECT_EQ(why(type, -ENODEV), Reason::VerbsAddressUnserved);
    EXPECT_EQ(why(type, -ENOENT), Reason::VerbsAddressUnserved);
    EXPECT_EQ(why(type, -ETIMEDOUT), Reason::ConnectTimedOut);
    EXPECT_EQ(why(type, -EHOSTUNREACH), Reason::HostUnreachable);
  }
  // A GID that the route's device does not have is known when RDMA-CM connects.
  EXPECT_EQ(reason_of_connect_error(EINVAL), Reason::VerbsAddressUnserved);
}

TEST(VerbsReason, is_the_peers_or_that_nobody_listens_for_a_request_that_is_not_granted) {
  const stub::StubNetwork network({stub::rxe_like()});
  const auto why = [&](rdma_cm_event_type type, int status, Bytes said = {}) {
    return reason_of_setup(*network.functions(), nullptr, type, status, said);
  };
  constexpr int kInvalidServiceId = 8, kStaleConnection = 10, kConsumerDefined = 28;
  EXPECT_EQ(why(RDMA_CM_EVENT_REJECTED, kInvalidServiceId), Reason::ConnectionRefused);
  EXPECT_EQ(why(RDMA_CM_EVENT_REJECTED, -ECONNREFUSED), Reason::ConnectionRefused);
  // A listener that goes says nothing, which InfiniBand's CM fills up.
  const std::vector<std::byte> nothing(148), something = {std::byte{}, std::byte{1}};
  EXPECT_EQ(why(RDMA_CM_EVENT_REJECTED, kConsumerDefined, nothing), Reason::ConnectionRefused);
  EXPECT_EQ(why(RDMA_CM_EVENT_REJECTED, -ECONNRESET), Reason::ConnectionRefused);
  EXPECT_EQ(why(RDMA_CM_EVENT_REJECTED, kConsumerDefined, something), Reason::ConnectionRejected);
  EXPECT_EQ(why(RDMA_CM_EVENT_REJECTED, -ECONNRESET, something), Reason::ConnectionRejected);
  EXPECT_EQ(why(RDMA_CM_EVENT_REJECTED, kStaleConnection), Reason::VerbsConnectionStale);
  EXPECT_EQ(why(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT), Reason::ConnectTimedOut);
  EXPECT_EQ(why(RDMA_CM_EVENT_DEVICE_REMOVAL, 0), Reason::VerbsDeviceRemoved);
  EXPECT_EQ(why(RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL), Reason::ConnectionLost);
}

TEST(VerbsReason, is_that_the_ports_are_down_whatever_fails_meanwhile) {
  stub::StubNetwork network({stub::rxe_like()});
  network.set_port(false);
  EXPECT_EQ(reason_of_setup(*network.functions(), nullptr, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV, {}),
            Reason::VerbsPortDown);
}

// Of two ports, of which the first one has no cable.
decltype(VerbsFunctions::query_device) query_device;
int with_two_ports(ibv_context* context, ibv_device_attr* attributes) {
  const int status = query_device(context, attributes);
  attributes->phys_port_cnt = 2;
  return status;
}
int second_is_up(ibv_context*, std::uint8_t number, ibv_port_attr* port) {
  port->state = number == 2 ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  return 0;
}

TEST(VerbsReason, is_not_that_the_ports_are_down_for_a_device_with_one_that_is_up) {
  const stub::StubNetwork network({stub::rxe_like()});
  VerbsFunctions functions = *network.functions();
  query_device = std::exchange(functions.query_device, with_two_ports);
  functions.query_port = second_is_up;
  EXPECT_EQ(reason_of_setup(functions, nullptr, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV, {}),
            Reason::VerbsAddressUnserved);
}

TEST(VerbsReason, is_what_stopped_requests_that_were_tried_often_enough) {
  EXPECT_EQ(reason_of_completion(IBV_WC_RETRY_EXC_ERR), Reason::ConnectionLost);
  EXPECT_EQ(reason_of_completion(IBV_WC_RESP_TIMEOUT_ERR), Reason::ConnectionLost);
  EXPECT_EQ(reason_of_completion(IBV_WC_RNR_RETRY_EXC_ERR), Reason::VerbsReceiverNotReady);
  EXPECT_EQ(reason_of_completion(IBV_WC_REM_ACCESS_ERR), Reason::PeerReportedError);
  EXPECT_EQ(reason_of_completion(IBV_WC_REM_INV_REQ_ERR), Reason::PeerReportedError);
  EXPECT_EQ(reason_of_completion(IBV_WC_FATAL_ERR), Reason::VerbsDeviceRemoved);
  EXPECT_EQ(reason_of_completion(IBV_WC_LOC_QP_OP_ERR), Reason::VerbsFailed);
  EXPECT_EQ(reason_of_receive(IBV_WC_LOC_LEN_ERR), Reason::MessageTooLong);
  EXPECT_EQ(reason_of_receive(IBV_WC_LOC_ACCESS_ERR), Reason::RemoteAccessDenied);
}

TEST(VerbsReason, is_a_right_or_a_limit_or_the_device_itself) {
  EXPECT_EQ(reason_of_device_error(EACCES), Reason::VerbsNotPermitted);
  EXPECT_EQ(reason_of_device_error(EPERM), Reason::VerbsNotPermitted);
  EXPECT_EQ(reason_of_device_error(ENODEV), Reason::VerbsDeviceMissing);
  EXPECT_EQ(reason_of_device_error(ENOMEM), Reason::VerbsDeviceFull);
  EXPECT_EQ(reason_of_device_error(EMFILE), Reason::TooManyOpenFiles);
  EXPECT_EQ(reason_of_device_error(EIO), Reason::VerbsFailed);
  EXPECT_EQ(reason_of_bind_error(EADDRINUSE), Reason::AddressInUse);
  EXPECT_EQ(reason_of_connect_error(EADDRINUSE), Reason::AddressInUse);
  EXPECT_EQ(reason_of_bind_error(ENODEV), Reason::VerbsAddressUnserved);
  EXPECT_EQ(reason_of_bind_error(EACCES), Reason::BindNotPermitted);
}

// What the log says beside the sentence.
std::string told;
void remember(Reason reason, std::string_view, std::string_view detail) {
  told = std::string(to_string(reason)) + ": " + std::string(detail);
}

TEST(VerbsReason, comes_with_the_limit_as_it_is_for_memory_that_cannot_be_locked) {
  set_trace_sink(remember);
  EXPECT_EQ(reason_of_registration_error(ENOMEM, 123456), Reason::VerbsMemlockTooLow);
  set_trace_sink(nullptr);
  EXPECT_EQ(told.find("VerbsMemlockTooLow: 123456 bytes more were wanted; RLIMIT_MEMLOCK is "), 0u)
      << told;
  EXPECT_EQ(reason_of_registration_error(EINVAL, 1), Reason::VerbsFailed);
}

}  // namespace
}  // namespace stag::fabric
