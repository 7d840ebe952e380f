// The servers that `stag serve` copies files from for its clients, as a client of theirs: a
// connection and a session for each copy, without state of files.
#pragma once

#include <memory>

#include "cli/serve/copy_from.h"
#include "net/loop.h"
#include "nfs/v4/compound/source_servers.h"
#include "rpc/channel.h"

namespace stag::cli {

class CopySources final : public nfs::nfs4::SourceServers {
 public:
  struct Fabric {
    bool devices = false;  // RDMA devices are used where they lead there, else software iWARP
    std::string device{};  // the only one; empty: any
  };
  // All outlive it. On the loop's thread.
  CopySources(net::EpollLoop& loop, const CopyFromHosts& hosts, Fabric fabric);

  bool any() const override { return hosts_.any(); }
  bool admits(std::string_view host) const override { return hosts_.admits(host); }
  Task<nfs::nfs4::SourceFile::Answer<std::unique_ptr<nfs::nfs4::SourceFile>>> open(
      nfs::nfs4::SourcePlace place, nfs::nfs4::SourceArgs args, CancelToken cancel) override;

 private:
  const CopyFromHosts& hosts_;
  const std::unique_ptr<rpc::Connector> tcp_, rdma_;
};

}  // namespace stag::cli
