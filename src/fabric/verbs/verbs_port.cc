#include "fabric/verbs/verbs_port.h"

#include <cerrno>

#include "fabric/verbs/verbs_reason.h"

namespace stag::fabric {
namespace {

constexpr int kBacklog = 128;

using Functions = std::shared_ptr<const VerbsFunctions>;

Result<Functions, Reason> functions_of(const VerbsOptions& options) {
  if (options.functions != nullptr) return options.functions;
  return load_verbs();
}

// On a channel of its own.
Result<CmId, Reason> new_id(const Functions& functions) {
  auto channel = open_channel(functions);
  if (!channel) return Failure{channel.error()};
  rdma_cm_id* id = nullptr;
  if (functions->create_id(channel->get(), &id, &CmUser::nobody(), RDMA_PS_TCP) != 0)
    return Failure{reason_of_device_error(errno)};
  return CmId(functions, *std::move(channel), id);
}

}  // namespace

Result<Ok, Reason> listen_at(const VerbsFunctions& functions, const CmId& id,
                             net::SocketAddress at) {
  if (functions.bind_addr(id.get(), at.data()) != 0 || functions.listen(id.get(), kBacklog) != 0)
    return Failure{reason_of_bind_error(errno)};
  return Ok{};
}

Result<std::shared_ptr<VerbsPort>, Reason> VerbsPort::listen(const VerbsOptions& options,
                                                             const Address& at) {
  const auto address = net::numeric_address(at);
  if (!address) return Failure{Reason::HostNotFound};
  const auto functions = functions_of(options);
  if (!functions) return Failure{functions.error()};
  auto id = new_id(*functions);
  if (!id) return Failure{id.error()};
  if (const auto listening = listen_at(**functions, *id, *address); !listening)
    return Failure{listening.error()};
  return std::shared_ptr<VerbsPort>(new VerbsPort(*std::move(id)));
}

Result<Ok, Reason> VerbsPort::rehearse(const VerbsOptions& options, const Address& at) {
  auto address = net::numeric_address({at.host, 0});
  if (!address) return Failure{Reason::HostNotFound};
  const auto functions = functions_of(options);
  if (!functions) return Failure{functions.error()};
  const auto id = new_id(*functions);
  if (!id) return Failure{id.error()};
  if ((*functions)->bind_addr(id->get(), address->data()) != 0)
    return Failure{reason_of_bind_error(errno)};
  // An address of every device, "::", has none yet.
  if (!allows(**functions, options, (*id)->verbs) || !finds_allowed(**functions, options))
    return Failure{Reason::VerbsDeviceElsewhere};
  return Ok{};
}

}  // namespace stag::fabric
