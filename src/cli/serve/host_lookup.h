// Hosts and their addresses, as the name service of this machine knows them (nsswitch.conf).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace stag::cli
