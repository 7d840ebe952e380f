#include "cli/serve/shown_export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stag::cli {
namespace {

// What may differ by flavor.
std::string words_by_flavor(const nfs::ExportOptions& options) {
  return fmt::format("{},{},{},anonuid={},anongid={}", options.read_only ? "ro" : "rw",
                     options.root_squash ? "root_squash" : "no_root_squash",
                     options.all_squash ? "all_squash" : "no_all_squash", options.anonymous_uid,
                     options.anonymous_gid);
}

}  // namespace

std::string words_of(const nfs::ExportOptions& options) {
  std::string words = options.secure ? "secure" : "insecure";
  if (!options.rdma) words += ",no_rdma";
  if (!options.by_flavor.empty()) {
    for (const oncrpc::AuthFlavor flavor : options.flavors)
      words +=
          fmt::format(",sec={},{}", nfs::flavor_name(flavor), words_by_flavor(options.of(flavor)));
    return words;
  }
  std::vector<std::string_view> flavors;
  for (const oncrpc::AuthFlavor flavor : options.flavors)
    flavors.push_back(nfs::flavor_name(flavor));
  return fmt::format("{},{},sec={}", words_by_flavor(options), words, fmt::join(flavors, ":"));
}

ShownExport shown(const ExportLine& line) {
  ShownExport made{line.path, line.folder.empty() ? "memory" : line.folder, {}, line.where, {}};
  // An error message goes on behind it.
  while (made.where.ends_with(' ') || made.where.ends_with(':')) made.where.pop_back();
  made.hosts = line.hosts;
  std::vector<std::string> words;
  if (line.file_system_id) words.push_back(fmt::format("fsid={}", *line.file_system_id));
  if (line.at_once != vfs::posix::AtOnce::Automatic)
    words.emplace_back(line.at_once == vfs::posix::AtOnce::Always ? "at_once" : "offload");
  if (line.nfs_only) words.emplace_back("nfs_only");
  if (line.mount_point)
    words.push_back(line.mount_point->empty() ? "mp" : "mp=" + *line.mount_point);
  made.options = fmt::format("{}", fmt::join(words, ","));
  return made;
}

}  // namespace stag::cli
