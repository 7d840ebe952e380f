#include "fabric/verbs/device_addresses.h"

#include "net/interfaces.h"

namespace stag::fabric {
namespace {

bool is_loopback(const Address& address) {
  return address.host == "::1" || address.host.rfind("127.", 0) == 0;
}

bool serves(VerbsLoop& loop, net::SocketAddress address) {
  const auto id = loop.make_id(CmUser::nobody());
  return id && loop.functions().bind_addr(id->get(), address.data()) == 0 &&
         (*id)->verbs != nullptr && loop.allows((*id)->verbs);
}

}  // namespace

std::vector<net::SocketAddress> device_addresses(VerbsLoop& loop, const net::SocketAddress& to) {
  const auto& listed = loop.options().local_addresses;
  const bool near = is_loopback(to.address());
  std::vector<net::SocketAddress> found;
  for (const Address& each : listed ? listed() : net::interface_addresses()) {
    const auto own = net::numeric_address(each);
    if (own && own->family() == to.family() && is_loopback(each) == near && serves(loop, *own))
      found.push_back(*own);
  }
  return found;
}

}  // namespace stag::fabric
