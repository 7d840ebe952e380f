#include "fabric/verbs/verbs_reason.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace stag::fabric {
namespace {

// InfiniBand's CM.
// The peer has a connection with the queue pair that asks, from before this machine failed.
constexpr int kStaleConnection = 10;

// Whether the device answers and none of its ports is up.
bool ports_are_down(const VerbsFunctions& functions, ibv_context* device) {
  ibv_device_attr attributes{};
  if (device == nullptr || functions.query_device(device, &attributes) != 0) return false;
  for (std::uint8_t number = 1; number <= attributes.phys_port_cnt; ++number) {
    ibv_port_attr port{};
    if (functions.query_port(device, number, &port) != 0 || port.state == IBV_PORT_ACTIVE)
      return false;
  }
  return true;
}

// Whether there are devices and none has a port that is up.
bool all_ports_are_down(const VerbsFunctions& functions) {
  int count = 0;
  ibv_context** devices = functions.get_devices(&count);
  if (devices == nullptr) return false;
  bool down = count > 0;
  for (int i = 0; i < count; ++i) down &= ports_are_down(functions, devices[i]);
  functions.free_devices(devices);
  return down;
}

// rdma-core reports a file that it may not open as one that is not there.
bool is_forbidden(const char* file) {
  const std::string path = std::string("/dev/infiniband/") + file;
  return ::access(path.c_str(), R_OK | W_OK) != 0 && errno == EACCES;
}

}  // namespace

Reason reason_of_completion(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS:
      return Reason::None;
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_OP_ERR:
      return Reason::PeerReportedError;
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return Reason::VerbsReceiverNotReady;
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
    case IBV_WC_WR_FLUSH_ERR:
      return Reason::ConnectionLost;
    case IBV_WC_FATAL_ERR:
      return Reason::VerbsDeviceRemoved;
    default:
      return Reason::VerbsFailed;
  }
}

Reason reason_of_receive(ibv_wc_status status) {
  if (status == IBV_WC_LOC_LEN_ERR) return Reason::MessageTooLong;
  if (status == IBV_WC_LOC_ACCESS_ERR || status == IBV_WC_REM_ACCESS_ERR)
    return Reason::RemoteAccessDenied;
  return reason_of_completion(status);
}

Reason reason_of_setup(const VerbsFunctions& functions, ibv_context* device,
                       rdma_cm_event_type type, int status, Bytes said) {
  if (type == RDMA_CM_EVENT_DEVICE_REMOVAL) return Reason::VerbsDeviceRemoved;
  if (type == RDMA_CM_EVENT_REJECTED) {
    // On iWARP it is an error number of the system, below zero.
    if (status == kStaleConnection) return Reason::VerbsConnectionStale;
    const bool decided =
        std::ranges::any_of(said, [](std::byte each) { return each != std::byte{}; });
    return decided ? Reason::ConnectionRejected : Reason::ConnectionRefused;
  }
  if (device != nullptr ? ports_are_down(functions, device) : all_ports_are_down(functions))
    return Reason::VerbsPortDown;
  if (status == -ENODEV || status == -ENOENT) return Reason::VerbsAddressUnserved;
  if (type == RDMA_CM_EVENT_ADDR_ERROR || type == RDMA_CM_EVENT_ROUTE_ERROR)
    return status == -ETIMEDOUT ? Reason::ConnectTimedOut : Reason::HostUnreachable;
  if (type == RDMA_CM_EVENT_UNREACHABLE) return Reason::ConnectTimedOut;
  return Reason::ConnectionLost;
}

Reason reason_of_async(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_QP_REQ_ERR:
      return Reason::RemoteAccessDenied;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_SRQ_ERR:
      return Reason::VerbsFailed;
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return kLastReceive;
    case IBV_EVENT_DEVICE_FATAL:
      return Reason::VerbsDeviceRemoved;
    default:
      return Reason::None;
  }
}

Reason reason_of_device_error(int error) {
  switch (error) {
    case EACCES:
    case EPERM:
      return Reason::VerbsNotPermitted;
    case ENODEV:
    case ENOENT:
    case ENOSYS:
      return Reason::VerbsDeviceMissing;
    case ENOMEM:
    case EAGAIN:
      return Reason::VerbsDeviceFull;
    case EMFILE:
    case ENFILE:
      return Reason::TooManyOpenFiles;
    default:
      trace(Reason::VerbsFailed, "rdma", std::strerror(error));
      return Reason::VerbsFailed;
  }
}

Reason reason_of_open_error(const ibv_device& device, int error) {
  if (is_forbidden(device.dev_name)) return Reason::VerbsNotPermitted;
  return reason_of_device_error(error);
}

Reason reason_of_cm_error(int error) {
  if (is_forbidden("rdma_cm")) return Reason::VerbsNotPermitted;
  if (error == ENOENT || error == ENXIO) return Reason::VerbsConnectionManagerMissing;
  return reason_of_device_error(error);
}

Reason reason_of_connect_error(int error) {
  switch (error) {
    // siw and others connect their TCP while they are asked.
    case ECONNREFUSED:
      return Reason::ConnectionRefused;
    case ECONNRESET:
      return Reason::ConnectionLost;
    case ETIMEDOUT:
      return Reason::ConnectTimedOut;
    case EHOSTUNREACH:
    case ENETUNREACH:
      return Reason::HostUnreachable;
    // RDMA-CM has chosen a port that TCP, whose ports iWARP uses, has given to another socket.
    case EADDRINUSE:
      return Reason::AddressInUse;
    // The addresses were resolved: what is refused now is their way through the device.
    case EINVAL:
      return Reason::VerbsAddressUnserved;
    default:
      return reason_of_device_error(error);
  }
}

Reason reason_of_bind_error(int error) {
  switch (error) {
    case EADDRINUSE:
      return Reason::AddressInUse;
    case EADDRNOTAVAIL:
      return Reason::AddressNotAvailable;
    case ENODEV:
      return Reason::VerbsAddressUnserved;
    case EACCES:
      return Reason::BindNotPermitted;
    default:
      return reason_of_device_error(error);
  }
}

Reason reason_of_registration_error(int error, std::size_t bytes) {
  if (error != ENOMEM && error != EAGAIN) return reason_of_device_error(error);
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  const std::string allowed = limit.rlim_cur == RLIM_INFINITY
                                  ? "unlimited"
                                  : std::to_string(limit.rlim_cur / 1024) + " KiB";
  trace(Reason::VerbsMemlockTooLow, "rdma",
        std::to_string(bytes) + " bytes more were wanted; RLIMIT_MEMLOCK is " + allowed);
  return Reason::VerbsMemlockTooLow;
}

}  // namespace stag::fabric
