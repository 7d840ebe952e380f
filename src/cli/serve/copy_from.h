// --copy-from: the servers that clients may have this one copy from (RFC 7862 4.5). It connects to
// them because a client says so, so that there are none unless the operator names them.
#pragma once

#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/network.h"
#include "cli/serve/export_line.h"
#include "cli/serve/host_lookup.h"
#include "cli/support/arguments.h"

namespace stag::cli {

class CopyFromOptions {
 public:
  void declare(Arguments& arguments);
  // Reads the hosts, and does not ask for them; the error is one sentence.
  Result<Ok, std::string> check();
  bool any() const { return !line_.clients.empty(); }
  // Its clients are the servers, as those of an export are written.
  const ExportLine& line() const { return line_; }

 private:
  Result<Ok, std::string> take(std::string_view text);

  std::vector<std::string> texts_;
  ExportLine line_;
};

// Their addresses, as far as they are known.
class CopyFromHosts {
 public:
  // `written`: CopyFromOptions::line(). Asks the name service for the hosts. Blocks, as
  // ask_for_hosts() does.
  explicit CopyFromHosts(ExportLine written, HostLookup lookup = system_addresses_of);
  CopyFromHosts(const CopyFromHosts&) = delete;

  // Others take their place, of which hosts that were among the former ones keep their addresses;
  // the rest has none before ask_again(). Any thread.
  void replace(ExportLine written);
  // The same again, also for those that were known. A host that is not known now keeps the
  // addresses that it had, as do all once `stop` is requested. Any thread.
  void ask_again(const std::stop_token& stop);
  // Whether there are any, known or not. Any thread.
  bool any() const;
  // Whether that numeric address is one of theirs. Any thread.
  bool admits(std::string_view host) const;
  // Those that the name service did not know. Any thread, as the next one.
  std::set<std::string> late() const;
  void take(const HostAnswers& answers);

 private:
  void find_networks();

  const HostLookup lookup_;
  mutable std::mutex mutex_;  // of what follows
  ExportLine written_;
  ExportLine line_;
  std::vector<IpNetwork> networks_;
};

}  // namespace stag::cli
