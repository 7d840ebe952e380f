// The functions that list the stub's devices.
#include <arpa/inet.h>

#include <cerrno>

#include "fabric/verbs/stub/stub_objects.h"

namespace stag::fabric::stub {
namespace {

ibv_device** get_device_list(int* count) {
  const Locked network;
  if (made_to_fail("ibv_get_device_list")) return nullptr;
  auto** list = new ibv_device*[network->devices.size() + 1];
  std::size_t found = 0;
  for (const auto& device : network->devices)
    if (!device->removed) list[found++] = &device->device;
  list[found] = nullptr;
  *count = static_cast<int>(found);
  ++network->objects;
  return list;
}

void free_device_list(ibv_device** list) {
  const Locked network;
  delete[] list;
  --network->objects;
}

ibv_context* open_device(ibv_device* device) {
  const Locked network;
  if (made_to_fail("ibv_open_device")) return nullptr;
  if (network->forbidden) {
    errno = EACCES;
    return nullptr;
  }
  ++network->objects;
  for (const auto& known : network->devices)
    if (&known->device == device) return &known->context();
  return nullptr;
}

int close_device(ibv_context*) {
  const Locked network;
  --network->objects;
  return 0;
}

ibv_gid gid_of(const StubOptions& options, const std::string& address) {
  ibv_gid gid{};
  if (options.iwarp) {
    gid.raw[5] = 1;  // a hardware address
    return gid;
  }
  const std::string text = address.find(':') == std::string::npos ? "::ffff:" + address : address;
  ::inet_pton(AF_INET6, text.c_str(), gid.raw);
  return gid;
}

ssize_t query_gid_table(ibv_context* context, ibv_gid_entry* entries, std::size_t most,
                        std::uint32_t, std::size_t) {
  const Locked network;
  if (made_to_fail("ibv_query_gid_table")) return -ENOMEM;
  const StubOptions& options = device_of(context).options;
  std::size_t found = 0;
  for (const std::string& address : options.addresses) {
    if (found == most || (options.iwarp && found == 1)) break;
    ibv_gid_entry entry{};
    entry.gid = gid_of(options, address);
    entry.gid_index = static_cast<std::uint32_t>(found);
    entry.port_num = 1;
    entry.gid_type = options.iwarp ? IBV_GID_TYPE_IB : IBV_GID_TYPE_ROCE_V2;
    entries[found++] = entry;
  }
  return static_cast<ssize_t>(found);
}

}  // namespace

void fill_listing_functions(VerbsFunctions& functions) {
  functions.get_device_list = get_device_list;
  functions.free_device_list = free_device_list;
  functions.open_device = open_device;
  functions.close_device = close_device;
  functions.query_gid_table = query_gid_table;
}

}  // namespace stag::fabric::stub
