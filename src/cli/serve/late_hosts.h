// Hosts among the clients of exports that the name service does not know when the exports are read,
// as at boot, where it may come after the server. Their exports are served all the same, to the
// others, and the name service is asked again now and then.
//
// Such a host has a rule in its place among the others, which no client matches: an export without
// rules would be open to all.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/loop.h"
#include "base/result.h"
#include "cli/serve/export_line.h"
#include "cli/serve/reloads.h"

namespace stag::cli {

// Of a host without addresses.
nfs::ClientRule late_rule(const std::string& host, const nfs::ExportOptions& options);
bool is_late(const nfs::ClientRule& rule);
bool has_late(const ExportLine& line);

// The addresses of a host; the error is one sentence.
using HostLookup =
    std::function<Result<std::vector<std::string>, std::string>(const std::string& host)>;
// Gives the late rules of an export addresses, as far as `addresses_of` knows them. Yields the
// clients that have got some: "client 'build': 192.0.2.7". Blocks as the lookup does.
std::vector<std::string> resolve_late(ExportLine& line, const HostLookup& addresses_of);

class ExportSet;

// Has the exports look for their late hosts again, while there are any. On the loop's thread.
class LateHosts {
 public:
  LateHosts(Loop& loop, Reloads& reloads, const ExportSet& exports)
      : loop_(loop), reloads_(reloads), exports_(exports) {
    arm();
  }
  LateHosts(const LateHosts&) = delete;

 private:
  void arm();

  Loop& loop_;
  Reloads& reloads_;
  const ExportSet& exports_;
  Timer timer_;
};

}  // namespace stag::cli
