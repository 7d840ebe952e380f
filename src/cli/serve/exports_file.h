// Exports as exports(5) writes them, such as /etc/exports:
//
//   /srv/data   192.0.2.0/24(rw,sync) build.example.org(rw,no_root_squash) @trusted(rw)
//   "/srv/my pictures"  -ro,all_squash  *
//
// Beside FILE the files FILE.d/*.exports are read, as exportfs(8) reads those of /etc/exports.d.
//
// Each folder is exported under its own path. Defaults are those of exports(5): ro, secure,
// root_squash, sec=sys. What this server does not do is refused where it would admit or show more
// than the file says, and else told as a remark.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/loop.h"
#include "base/result.h"
#include "cli/serve/export_line.h"

namespace stag::cli {

struct ExportsFile {
  std::vector<ExportLine> lines;
  std::vector<std::string> remarks;  // sentences for the operator, with file and line
  bool unmounted = false;            // there are no lines until something is mounted (mp)
};

// Knows netgroups, and this host; blocks.
struct HostService {
  virtual ~HostService() = default;
  // Yields why nobody knows the netgroup, or an empty text. Fails with a sentence where any host
  // belongs to it.
  virtual Result<std::string, std::string> check_netgroup(const std::string& netgroup) = 0;
  // Whether something is mounted at the folder. Fails with a phrase: why nobody knows.
  virtual Result<bool, std::string> is_mount_point(const std::string& folder) = 0;
};

struct ExportsText {
  std::string path;  // for messages
  std::string text;
};
// Several are as one, in their order. Fails with one sentence.
Result<ExportsFile, std::string> parse_exports_files(const std::vector<ExportsText>& texts,
                                                     HostService& hosts);
// The files to be read in place of `path`: itself, which may be missing where there are others, and
// those in the directory beside it, whose numbers count as such. Fails with one sentence.
Result<std::vector<std::string>, std::string> exports_files(const std::string& path);
// Reads them. Fails with one sentence.
Result<std::vector<ExportsText>, std::string> read_exports_files(const std::string& path);
// As parse_exports_files() does, and asks this machine for netgroups, and with `patience` for each
// mount point.
Result<ExportsFile, std::string> parse_exports_here(const std::vector<ExportsText>& texts,
                                                    Duration patience);

}  // namespace stag::cli
