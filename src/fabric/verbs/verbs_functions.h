// The functions of rdma-core that the provider calls, as a table: found at run time with dlopen(),
// so that binaries run where rdma-core is not installed, or those of a stub device.
//
// What rdma-core defines as inline functions over context->ops (ibv_post_send, ibv_post_recv,
// ibv_post_srq_recv, ibv_poll_cq, ibv_req_notify_cq, ibv_alloc_mw, ibv_dealloc_mw) is called
// directly: a stub fills context->ops. Each member behaves as the manual page of the function with
// its name says.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <memory>
#include <string>

#include "base/reason.h"
#include "base/result.h"

namespace stag::fabric {

struct VerbsFunctions {
  // libibverbs
  ibv_device** (*get_device_list)(int* count) = nullptr;
  void (*free_device_list)(ibv_device**) = nullptr;
  ibv_context* (*open_device)(ibv_device*) = nullptr;
  int (*close_device)(ibv_context*) = nullptr;
  // Null before rdma-core 32.
  ssize_t (*query_gid_table)(ibv_context*, ibv_gid_entry*, std::size_t most, std::uint32_t flags,
                             std::size_t entry_size) = nullptr;
  const char* (*get_device_name)(ibv_device*) = nullptr;
  int (*query_device)(ibv_context*, ibv_device_attr*) = nullptr;
  int (*query_port)(ibv_context*, std::uint8_t port, ibv_port_attr*) = nullptr;
  int (*get_async_event)(ibv_context*, ibv_async_event*) = nullptr;
  void (*ack_async_event)(ibv_async_event*) = nullptr;
  ibv_pd* (*alloc_pd)(ibv_context*) = nullptr;
  int (*dealloc_pd)(ibv_pd*) = nullptr;
  ibv_mr* (*reg_mr)(ibv_pd*, void* address, std::size_t length, int access) = nullptr;
  int (*dereg_mr)(ibv_mr*) = nullptr;
  ibv_comp_channel* (*create_comp_channel)(ibv_context*) = nullptr;
  int (*destroy_comp_channel)(ibv_comp_channel*) = nullptr;
  ibv_cq* (*create_cq)(ibv_context*, int entries, void* context, ibv_comp_channel*,
                       int vector) = nullptr;
  int (*destroy_cq)(ibv_cq*) = nullptr;
  int (*get_cq_event)(ibv_comp_channel*, ibv_cq**, void** context) = nullptr;
  void (*ack_cq_events)(ibv_cq*, unsigned count) = nullptr;
  ibv_srq* (*create_srq)(ibv_pd*, ibv_srq_init_attr*) = nullptr;
  int (*destroy_srq)(ibv_srq*) = nullptr;
  int (*modify_srq)(ibv_srq*, ibv_srq_attr*, int mask) = nullptr;
  int (*modify_qp)(ibv_qp*, ibv_qp_attr*, int mask) = nullptr;

  // librdmacm
  ibv_context** (*get_devices)(int* count) = nullptr;
  void (*free_devices)(ibv_context**) = nullptr;
  rdma_event_channel* (*create_event_channel)() = nullptr;
  void (*destroy_event_channel)(rdma_event_channel*) = nullptr;
  int (*get_cm_event)(rdma_event_channel*, rdma_cm_event**) = nullptr;
  int (*ack_cm_event)(rdma_cm_event*) = nullptr;
  int (*create_id)(rdma_event_channel*, rdma_cm_id**, void* context, rdma_port_space) = nullptr;
  int (*destroy_id)(rdma_cm_id*) = nullptr;
  int (*migrate_id)(rdma_cm_id*, rdma_event_channel*) = nullptr;
  int (*bind_addr)(rdma_cm_id*, sockaddr*) = nullptr;
  int (*listen)(rdma_cm_id*, int backlog) = nullptr;
  int (*resolve_addr)(rdma_cm_id*, sockaddr* from, sockaddr* to, int timeout_ms) = nullptr;
  int (*resolve_route)(rdma_cm_id*, int timeout_ms) = nullptr;
  int (*create_qp)(rdma_cm_id*, ibv_pd*, ibv_qp_init_attr*) = nullptr;
  void (*destroy_qp)(rdma_cm_id*) = nullptr;
  int (*connect)(rdma_cm_id*, rdma_conn_param*) = nullptr;
  int (*accept)(rdma_cm_id*, rdma_conn_param*) = nullptr;
  int (*reject)(rdma_cm_id*, const void* private_data, std::uint8_t length) = nullptr;
  int (*disconnect)(rdma_cm_id*) = nullptr;
  int (*notify)(rdma_cm_id*, ibv_event_type) = nullptr;
};

// Where the functions are looked for.
struct VerbsLibraryNames {
  std::string verbs = "libibverbs.so.1";
  std::string cm = "librdmacm.so.1";
};

// The functions of the installed rdma-core, which stays loaded; from then on threads of loops keep
// their credentials (base/loop_credentials.h). VerbsLibraryMissing when a library is not there or
// lacks one of them.
Result<std::shared_ptr<const VerbsFunctions>, Reason> load_verbs(
    const VerbsLibraryNames& names = {});

}  // namespace stag::fabric
