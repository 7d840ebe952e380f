// What an administrator is shown of an export that is served, beside the rules of its clients,
// which nfs::Export has.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/serve/export_line.h"

namespace stag::cli {

struct ShownExport {
  std::string path{};
  std::string store{};    // as it was configured: a folder, "memory", "ceph:PATH"
  std::string options{};  // those for all clients: "fsid=7,offload"; empty: none
  std::string where{};    // it was configured: an option, or file and line
  std::map<std::string, HostClient> hosts{};
};
using ShownExports = std::shared_ptr<const std::vector<ShownExport>>;

ShownExport shown(const ExportLine& line);

// Options in the words of exports(5), with all that they have by default:
// "rw,insecure,root_squash,no_all_squash,anonuid=65534,anongid=65534,sec=sys:none". Where flavors
// differ, the words of each stand behind its "sec=".
std::string words_of(const nfs::ExportOptions& options);

}  // namespace stag::cli
