// Hosts and their addresses, as the name service of this machine knows them (nsswitch.conf). It may
// take minutes for each, and cannot be told to give up: nothing that has to end waits for it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/loop.h"
#include "base/result.h"

namespace stag::cli {

// Whether the name service can be asked for it: a name, and no address, network or pattern.
bool is_host_name(std::string_view text);

// The addresses of a host, at least one; the error is one sentence: they are not known.
using HostAnswer = Result<std::vector<std::string>, std::string>;
using HostAnswers = std::map<std::string, HostAnswer>;
using HostLookup = std::function<HostAnswer(const std::string& host)>;

// Asks the name service, and blocks: a minute or longer where nobody answers. Any thread.
HostAnswer system_addresses_of(const std::string& host);

// Asks for some hosts on threads of its own, which are left to themselves when the inquiry goes.
class HostInquiry {
 public:
  // Begins. `lookup`, and whatever it uses, is in use until it has returned for the last host,
  // which may be when the process ends.
  HostInquiry(const std::set<std::string>& hosts, HostLookup lookup);

  bool ended() const;
  // Blocks until it has ended, no host has become known for `patience`, or `stop` is requested.
  void wait(Duration patience, const std::stop_token& stop) const;
  // The answers for all hosts: those that have not been answered yet are not known.
  HostAnswers answers() const;

 private:
  struct Asked;
  static void ask(Asked& asked);
  const std::shared_ptr<Asked> asked_;
};

}  // namespace stag::cli
