#include "fabric/verbs/verbs_functions.h"

#include <cstring>

#include "base/loaded_library.h"
#include "base/loop_credentials.h"

namespace stag::fabric {
namespace {

// Before rdma-core 28 devices have no query_port of their own behind the context; the exported
// function then fills the part of the structure that both know.
int (*exported_query_port)(ibv_context*, std::uint8_t, _compat_ibv_port_attr*) = nullptr;

// ibv_query_port(), which verbs.h defines as a macro over this.
int query_port_of(ibv_context* context, std::uint8_t port, ibv_port_attr* attributes) {
  const verbs_context* extended = verbs_get_ctx(context);
  constexpr std::size_t kNeeded = sizeof(verbs_context) - offsetof(verbs_context, query_port);
  if (extended != nullptr && extended->sz >= kNeeded && extended->query_port != nullptr)
    return extended->query_port(context, port, attributes, sizeof *attributes);
  std::memset(attributes, 0, sizeof *attributes);
  return exported_query_port(context, port, reinterpret_cast<_compat_ibv_port_attr*>(attributes));
}

void find_verbs(LoadedLibrary& library, VerbsFunctions& functions) {
  library.find("ibv_get_device_list", functions.get_device_list);
  library.find("ibv_free_device_list", functions.free_device_list);
  library.find("ibv_open_device", functions.open_device);
  library.find("ibv_close_device", functions.close_device);
  library.find_newer("_ibv_query_gid_table", functions.query_gid_table);
  library.find("ibv_get_device_name", functions.get_device_name);
  library.find("ibv_query_device", functions.query_device);
  library.find("ibv_query_port", exported_query_port);
  functions.query_port = query_port_of;
  library.find("ibv_get_async_event", functions.get_async_event);
  library.find("ibv_ack_async_event", functions.ack_async_event);
  library.find("ibv_alloc_pd", functions.alloc_pd);
  library.find("ibv_dealloc_pd", functions.dealloc_pd);
  library.find("ibv_reg_mr", functions.reg_mr);
  library.find("ibv_dereg_mr", functions.dereg_mr);
  library.find("ibv_create_comp_channel", functions.create_comp_channel);
  library.find("ibv_destroy_comp_channel", functions.destroy_comp_channel);
  library.find("ibv_create_cq", functions.create_cq);
  library.find("ibv_destroy_cq", functions.destroy_cq);
  library.find("ibv_get_cq_event", functions.get_cq_event);
  library.find("ibv_ack_cq_events", functions.ack_cq_events);
  library.find("ibv_create_srq", functions.create_srq);
  library.find("ibv_destroy_srq", functions.destroy_srq);
  library.find("ibv_modify_srq", functions.modify_srq);
  library.find("ibv_modify_qp", functions.modify_qp);
}

void find_cm(LoadedLibrary& library, VerbsFunctions& functions) {
  library.find("rdma_get_devices", functions.get_devices);
  library.find("rdma_free_devices", functions.free_devices);
  library.find("rdma_create_event_channel", functions.create_event_channel);
  library.find("rdma_destroy_event_channel", functions.destroy_event_channel);
  library.find("rdma_get_cm_event", functions.get_cm_event);
  library.find("rdma_ack_cm_event", functions.ack_cm_event);
  library.find("rdma_create_id", functions.create_id);
  library.find("rdma_destroy_id", functions.destroy_id);
  library.find("rdma_migrate_id", functions.migrate_id);
  library.find("rdma_bind_addr", functions.bind_addr);
  library.find("rdma_listen", functions.listen);
  library.find("rdma_resolve_addr", functions.resolve_addr);
  library.find("rdma_resolve_route", functions.resolve_route);
  library.find("rdma_create_qp", functions.create_qp);
  library.find("rdma_destroy_qp", functions.destroy_qp);
  library.find("rdma_connect", functions.connect);
  library.find("rdma_accept", functions.accept);
  library.find("rdma_reject", functions.reject);
  library.find("rdma_disconnect", functions.disconnect);
  library.find("rdma_notify", functions.notify);
}

}  // namespace

Result<std::shared_ptr<const VerbsFunctions>, Reason> load_verbs(const VerbsLibraryNames& names) {
  auto functions = std::make_shared<VerbsFunctions>();
  LoadedLibrary verbs(names.verbs), cm(names.cm);
  find_verbs(verbs, *functions);
  find_cm(cm, *functions);
  for (const LoadedLibrary* library : {&verbs, &cm}) {
    if (library->failure().empty()) continue;
    trace(Reason::VerbsLibraryMissing, names.verbs, library->failure());
    return Failure{Reason::VerbsLibraryMissing};
  }
  keep_credentials_of_loops();
  return std::shared_ptr<const VerbsFunctions>(std::move(functions));
}

}  // namespace stag::fabric
