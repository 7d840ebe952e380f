// Kerberos of `stag serve`: its keytab, and who the users of principals are.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/executor.h"
#include "base/result.h"
#include "cli/serve/export_line.h"
#include "cli/serve/store_watch.h"
#include "cli/support/arguments.h"
#include "gss/mechanism.h"
#include "net/worker_pool.h"
#include "nfs/export/principal_map.h"
#include "rpc/authenticator.h"
#include "rpc/gss/rpcsec_gss.h"

namespace stag::cli {

// Whether clients may use Kerberos with one of these exports.
bool takes_kerberos(const std::vector<ExportLine>& lines);

class KerberosOptions {
 public:
  void declare(Arguments& arguments);
  // Null where neither an export takes Kerberos nor a keytab is named. `stores` watches those who
  // accept tokens. What it yields serves as many loops, and is gone before this object. The error
  // is a sentence. Blocking.
  Result<std::unique_ptr<rpc::Authenticator>, std::string> open(
      bool wanted, std::shared_ptr<nfs::PrincipalMap> principals, StoreWatch& stores,
      std::size_t loops);

  // Whether open() would find its keytab. The error is its sentence. Blocking.
  Result<Ok, std::string> check(const std::vector<ExportLine>& lines) const;

  // Why these exports cannot be served: they take Kerberos, and open() has found no keytab, for it
  // was not wanted then. Empty: they can.
  std::string obstacle(const std::vector<ExportLine>& lines) const;

 private:
  Result<std::unique_ptr<gss::Acceptor>, std::string> acceptor() const;

  std::string keytab_;
  std::uint64_t contexts_ = rpc::GssServerOptions{}.contexts;
  bool opened_ = false;
  std::shared_ptr<Executor> protection_{};  // once opened
};

// The threads that protect long messages: as many as loops, which they relieve. Hosts take turns.
// Calls wait as long as there are any, for what is refused is computed by a loop, in front of
// everybody on it; calls are bounded by then.
net::WorkerOptions workers_for_protection(std::size_t loops);

}  // namespace stag::cli
