// Limits on what clients of NFS version 4 may keep in a server: options of `stag serve`.
#pragma once

#include <cstdint>

#include "cli/support/arguments.h"
#include "nfs/v4/nfs4_server.h"

namespace stag::cli {

class Nfs4Limits {
 public:
  void declare(Arguments& arguments);
  void apply(nfs::nfs4::Nfs4Options& options) const;

 private:
  nfs::nfs4::Nfs4Options options_;
};

}  // namespace stag::cli
