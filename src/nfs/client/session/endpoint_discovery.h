// Finds the addresses of a server's services that its URL leaves open: asks rpcbind over TCP, for
// the programs and the transport of the URL.
#pragma once

#include "base/address.h"
#include "nfs/client/protocol/options.h"
#include "nfs/client/session/url.h"
#include "rpc/channel.h"

namespace stag::nfs::client {

// The address of the NFS service: that of the URL, or with `port=rpcbind` the port that is
// registered for the URL's version of NFS under the netids of its transport (RFC 8267 4.2: rdma and
// rdma6). `tcp` connects by TCP. Fails when rpcbind does not answer or has no such entry.
Task<Outcome<Address>> find_nfs(rpc::Connector& tcp, const Url& url, const ProtocolOptions& calls);

// The MOUNT service over TCP: `mountport` of the URL, else rpcbind's answer, else the usual port,
// on which servers without rpcbind have it. Fails only when cancelled.
Task<Outcome<Address>> find_mount(rpc::Connector& tcp, const Url& url,
                                  const ProtocolOptions& calls);

}  // namespace stag::nfs::client
