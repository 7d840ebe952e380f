#include "cli/serve/export_remarks.h"

#include <fmt/format.h>

#include <algorithm>

namespace stag::cli {
namespace {

// With "secure" and AUTH_SYS, root of a client is whom its kernel says: its users have no reserved
// port. Over RDMA nobody needs one.
bool makes_anybody_root(const nfs::ExportOptions& options) {
  const nfs::ExportOptions& of_sys = options.of(oncrpc::AuthFlavor::AUTH_SYS);
  const bool root = !of_sys.root_squash && !of_sys.all_squash;
  return options.secure && options.rdma && root &&
         std::ranges::count(options.flavors, oncrpc::AuthFlavor::AUTH_SYS) != 0;
}

}  // namespace

std::vector<std::string> remarks_on(const ExportLine& line) {
  std::vector<std::string> remarks;
  const auto look = [&](const nfs::ExportOptions& options, const std::string& clients) {
    if (makes_anybody_root(options))
      remarks.push_back(fmt::format(
          "{}any user of a client of {}{} is root there over RDMA, where 'secure' cannot ask for a "
          "reserved port: take 'root_squash', 'sec=krb5p', or 'no_rdma' to serve it over TCP only",
          line.where, line.path, clients));
  };
  if (line.clients.empty()) look(line.options, "");
  for (const nfs::ClientRule& rule : line.clients)
    look(rule.options, fmt::format(" ({})", rule.match));
  return remarks;
}

}  // namespace stag::cli
