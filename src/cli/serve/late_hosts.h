// Clients of exports that are hosts by their names, which the name service may not know when the
// exports are read: at boot, where it may come after the server, and while it is out. Their exports
// are served all the same, and the name service is asked again now and then.
//
// - A host that was known before keeps its addresses until others are known.
// - One that never was has a rule in its place that no client matches: an export without rules
// would
//   be open to all. And since it may be any caller, a rule for more than one host (a network, a
//   pattern, a netgroup, "*") grants no more than the host would get: such a rule would else give a
//   host that is to have less what it has for everybody.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/loop.h"
#include "cli/serve/export_line.h"
#include "cli/serve/host_lookup.h"
#include "cli/serve/reloads.h"

namespace stag::cli {

// In ExportLine::clients.
nfs::ClientRule host_rule(const std::string& host, const nfs::ExportOptions& options);

// Whether the name service does not know a host of the export now.
bool has_late(const ExportLine& line);
// Asks for the hosts of the export that are late. Yields those that have become known: "client
// 'build': 192.0.2.7". Blocks as the lookup does.
std::vector<std::string> resolve_late(ExportLine& line, const HostLookup& addresses_of);
// Hosts of the export without addresses have those that they had `before`.
void keep_addresses(ExportLine& line, const ExportLine& before);

// What the export's hosts and other clients come to. Where several have one address, the first
// counts.
std::vector<nfs::ClientRule> rules_of(const ExportLine& line);

// Each client that nobody knows now, and why, in one sentence for the operator.
std::vector<std::string> unknown_clients(const ExportLine& line);

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
