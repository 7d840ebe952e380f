// Names of users and groups for NFSv4 clients, from libnfsidmap and its /etc/idmapd.conf. The
// library is loaded at run time; without it owners are numbers.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "cli/support/arguments.h"
#include "nfs/v4/compound/shared_state.h"

namespace stag::cli {

// `domain` empty: that of /etc/idmapd.conf. One at a time in a process, which the library keeps its
// state in. The error is one phrase. Blocking.
Result<std::unique_ptr<nfs::nfs4::NameService>, std::string> open_libnfsidmap(
    const std::string& domain);

struct IdMappingOptions {
  std::string mode = "numbers";
  std::string domain;

  void declare(Arguments& arguments);
  // Without the library and without these options owners are numbers, and nothing else. The error
  // is a sentence. Blocking.
  Result<Ok, std::string> apply(nfs::nfs4::Nfs4Options& to) const;
};

}  // namespace stag::cli
