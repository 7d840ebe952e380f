#include "nfs/client/session/endpoint_discovery.h"

#include <algorithm>

#include "nfs/proto/mount3.h"
#include "nfs/proto/nfs3.h"
#include "rpcbind/lookup.h"

namespace stag::nfs::client {
namespace {

using Lookup = rpc::CallResult<rpcbind::Found>;

Task<Lookup> ask(rpc::Connector& tcp, const Url& url, const ProtocolOptions& calls,
                 rpcbind::Question question) {
  rpcbind::Options options;
  options.port = url.rpcbind_port.value_or(rpcbind::kPort);
  options.cancel = calls.cancel;
  if (calls.timeout > Duration::zero()) options.timeout = std::min(options.timeout, calls.timeout);
  return rpcbind::lookup(tcp, url.host, std::move(question), options);
}

std::uint32_t mount_version(const Url& url) {
  return url.version == 2 ? mount3::MOUNTPROC1_MNT::version : mount3::MOUNTPROC3_MNT::version;
}

}  // namespace

Task<Outcome<Address>> find_nfs(rpc::Connector& tcp, const Url& url, const ProtocolOptions& calls) {
  if (!url.port_from_rpcbind) co_return url.nfs_address();
  rpcbind::Question question;
  question.program = v3::NFS_PROGRAM;
  question.version = url.version.value_or(3);
  question.netids = rpcbind::netids_for(
      url.protocol == Url::Protocol::Tcp ? rpcbind::kTcp : rpcbind::kRdma, url.host);
  const Lookup found = co_await ask(tcp, url, calls, std::move(question));
  if (!found)
    co_return Failure{Error::of_call(
        {"find the NFS service by rpcbind (a port behind the host would name it)", {}},
        found.error())};
  co_return Address{url.host, found->port};
}

Task<Outcome<Address>> find_mount(rpc::Connector& tcp, const Url& url,
                                  const ProtocolOptions& calls) {
  if (url.mount_port) co_return url.mount_address();
  rpcbind::Question question;
  question.program = mount3::MOUNT_PROGRAM;
  question.version = mount_version(url);
  question.netids = rpcbind::netids_for(rpcbind::kTcp, url.host);
  const Lookup found = co_await ask(tcp, url, calls, std::move(question));
  if (found) co_return Address{url.host, found->port};
  if (calls.cancel.cancelled())
    co_return Failure{Error::of_call({"find the MOUNT service", {}}, found.error())};
  co_return url.mount_address();
}

}  // namespace stag::nfs::client
