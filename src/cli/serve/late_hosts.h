// Clients of exports that are hosts by their names, which the name service may not know when the
// exports are read: at boot, where it may come after the server, and while it is out. Their exports
// are served all the same, and the name service is asked again now and then, while nobody waits.
//
// - A host that was known before keeps its addresses until others are known.
// - One that never was has a rule in its place that no client matches: an export without rules
// would
//   be open to all. And since it may be any caller, a rule for more than one host (a network, a
//   pattern, a netgroup, "*") grants no more than the host would get: such a rule would else give a
//   host that is to have less what it has for everybody.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "base/loop.h"
#include "cli/serve/export_line.h"
#include "cli/serve/host_lookup.h"
#include "cli/serve/reloads.h"

namespace stag::cli {

// In ExportLine::clients.
nfs::ClientRule host_rule(const std::string& host, const nfs::ExportOptions& options);

// The hosts of the export that the name service does not know now.
std::set<std::string> late_hosts(const ExportLine& line);
// What has been answered for the export's late hosts. Yields those that have become known:
// "'build': 192.0.2.7".
std::vector<std::string> take_answers(ExportLine& line, const HostAnswers& answers);
// Asks this machine's name service for the late hosts of the exports. Blocks until it has answered,
// is silent for too long, or `stop` is requested. `lookup`: as for HostInquiry.
void ask_for_hosts(std::vector<ExportLine>& lines, const std::stop_token& stop = {},
                   const HostLookup& lookup = system_addresses_of);
// Hosts of the export without addresses have those that they had `before`.
void keep_addresses(ExportLine& line, const ExportLine& before);

// What the export's hosts and other clients come to. Where several have one address, the first
// counts.
std::vector<nfs::ClientRule> rules_of(const ExportLine& line);

// Each client that nobody knows now, and why, in one sentence for the operator.
std::vector<std::string> unknown_clients(const ExportLine& line);

// Asks again for the hosts that are late, while there are any. On the loop's thread.
class LateHosts {
 public:
  struct Steps {
    std::function<std::set<std::string>()> late;    // called while no reload runs
    HostLookup lookup;                              // as for HostInquiry
    std::function<void(const HostAnswers&)> known;  // on another thread; no reload runs beside it
  };
  LateHosts(Loop& loop, Reloads& reloads, Steps steps)
      : loop_(loop), reloads_(reloads), steps_(std::move(steps)) {
    ask();
  }
  LateHosts(const LateHosts&) = delete;

 private:
  void ask();
  void listen();

  Loop& loop_;
  Reloads& reloads_;
  const Steps steps_;
  std::optional<HostInquiry> inquiry_;
  Timer timer_;
};

}  // namespace stag::cli
