// `stag status exports`: what a running server exports to whom, as `exportfs -v` tells it.
#pragma once

#include <string>

#include "cli/commands/ask.h"

namespace stag::cli {

// The addresses of a host, which may be one already. The error is a sentence. Asks the name service
// of this machine, and blocks.
Result<std::vector<std::string>, std::string> addresses_to_ask_for(const std::string& host);

// Prints it; `addresses` empty: of all clients. All that it refers to outlives the Task. Yields an
// empty string, or else a sentence.
Task<std::string> show_exports(Run& run, AskedServer& server,
                               const std::vector<std::string>& addresses, bool json);

}  // namespace stag::cli
