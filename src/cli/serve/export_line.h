// An export as the operator writes it; the options are those of exports(5).
//
// After --export, and as text in a configuration file:
//   /name=DIR|memory|ceph:PATH[,OPTION]...[,client=NETWORK[:OPTION]...]...
// (cli/serve/ceph_export.h has more on ceph:PATH). As a table in a configuration file:
//   [[export]]
//   path = "/name"
//   folder = "DIR"                    # or "memory"
//   options = ["ro"]                  # also those for all clients, such as "offload"
//   fsid = 7
//   clients = [{match = "192.0.2.0/24", options = ["rw", "no_root_squash"]}, {match = "*"}]
//
// A client's options are those of the export, overridden by its own. NETWORK is an address, a
// network, a host name, which the name service is asked for afterwards (cli/serve/late_hosts.h), or
// "*"; after client= an IPv6 address stands in brackets: client=[2001:db8::]/32:rw.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/support/config.h"
#include "nfs/export/exports.h"
#include "vfs/posix/options.h"

namespace stag::cli {

// A client that the name service does not know yet, and why.
struct UnknownClient {
  std::string match;
  std::string why;
};

// A client that is a host by its name.
struct HostClient {
  // As last known; empty: never yet.
  std::vector<std::string> addresses{};
  // The name service does not know it now, in one sentence; empty: it does.
  std::string why = "nobody has been asked for it";
};

struct ExportLine {
  std::string path;    // "/name"
  std::string folder;  // empty: memory; also ceph:PATH...
  nfs::ExportOptions options;
  // As they are written: a host has one rule, without addresses.
  std::vector<nfs::ClientRule> clients{};
  // Those of them that are hosts, by their names (cli/serve/late_hosts.h).
  std::map<std::string, HostClient> hosts{};
  std::optional<std::uint64_t> file_system_id{};  // fsid=N
  // at_once and offload, of a folder.
  vfs::posix::AtOnce at_once = vfs::posix::AtOnce::Automatic;
  // No program of this machine uses the folder.
  bool nfs_only = false;
  // It is there while something is mounted at this path (mp=PATH); empty: at the folder (mp).
  std::optional<std::string> mount_point{};
  // Netgroups among them that a service was found to have.
  std::set<std::string> netgroups{};
  // Those that nobody knows yet.
  std::vector<UnknownClient> unknown{};
  // Why nobody knows whether it is to be exported, in one sentence: as long as it is, it goes on.
  std::string doubt{};
  // Prefix of error messages: the option, or file and line.
  std::string where{};
};

// Fails with one sentence.
Result<ExportLine, std::string> parse_export(std::string_view text);
// The setting `export` of the configuration file at `path`: texts, tables, or both.
Result<std::vector<ExportLine>, std::string> parse_exports(const std::string& path,
                                                           const Setting& setting);

}  // namespace stag::cli
