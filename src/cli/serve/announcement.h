// What `stag serve` prints before it serves and when it is ready.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/address.h"
#include "cli/serve/export_line.h"

namespace stag::cli {

// The exports, and what to beware of: one line each. `hosts` are listened at.
std::string announcement(const std::vector<ExportLine>& exports,
                         const std::vector<std::string>& hosts);

// The listeners at one host.
struct ReadyAt {
  std::string host;
  struct Rdma {
    std::string fabric;  // "iwarp", "verbs"
    Address address;
  };
  std::vector<Rdma> rdma;
  std::optional<Address> udp;
  Address tcp;
};
// A line for each listener, with a URL of `first` to copy. TCP comes last.
std::string ready_lines(const ReadyAt& at, const ExportLine& first);

}  // namespace stag::cli
