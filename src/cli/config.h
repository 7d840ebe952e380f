// A TOML file as a flat list of settings: the keys are the names of a command's options, the values
// what would follow them on the command line.
//
//   export = ["/data=/srv/data,ro", "/scratch=memory"]
//   rdma-port = 20049
//   rpcbind = false
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace stag::cli {

struct Setting {
  std::string key;
  std::vector<std::string> values;  // several for an array, in its order
  unsigned line = 0;
};

// Fails with one sentence that names the file and, where there is one, the line.
Result<std::vector<Setting>, std::string> read_config(const std::string& path);

}  // namespace stag::cli
