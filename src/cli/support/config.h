// A TOML file as settings: the keys are the names of a command's options, the values their
// arguments. A setting may also hold tables, for structured values.
//
//   rdma-port = 20049
//   listen = ["192.0.2.1", "::1"]
//   [[export]]
//   path = "/data"
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace stag::cli {

struct Setting;

// A text, a number or a truth value as it would stand on the command line, or a table.
struct Value {
  std::string text;
  std::vector<Setting> members;  // of a table, in the order of their lines
  bool is_table = false;
  bool is_truth = false;
  unsigned line = 0;
};

struct Setting {
  std::string key;
  std::vector<Value> values;  // several for an array, in its order
  bool is_array = false;
  unsigned line = 0;
};

// In the order of their lines. Fails with one sentence that names the file and, where there is one,
// the line.
Result<std::vector<Setting>, std::string> read_config(const std::string& path);

// "FILE:LINE: "
std::string place_in(const std::string& path, unsigned line);

}  // namespace stag::cli
