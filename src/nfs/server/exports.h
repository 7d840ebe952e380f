// What is served, and to whom as whom. An Export is a FileSystem under a path name with the options
// of exports(5). The table is filled before serving starts and never changes afterwards, so every
// loop reads it without a lock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "rpc/authenticator.h"
#include "vfs/vfs.h"

namespace stag::nfs {

struct ExportOptions {
  bool read_only = false;
  bool root_squash = true;  // uid 0 and gid 0 become the anonymous ones
  bool all_squash = false;  // everybody becomes anonymous
  std::uint32_t anonymous_uid = 65534;
  std::uint32_t anonymous_gid = 65534;
  bool secure = false;  // TCP and UDP clients must use a port below 1024; means nothing on RDMA
  friend bool operator==(const ExportOptions&, const ExportOptions&) = default;
};

// A sentence for the operator.
struct ExportError {
  std::string message;
};

// "ro,root_squash,anonuid=99": the words of exports(5), comma-separated, later ones win.
Result<ExportOptions, ExportError> parse_export_options(std::string_view text);

struct Export {
  std::uint32_t id = 0;
  std::string path;  // normal form: begins with '/', no "//", no trailing '/' (but for "/")
  std::shared_ptr<vfs::FileSystem> file_system;
  ExportOptions options;

  // Whom the caller acts as here.
  vfs::Credentials credentials(const rpc::Caller& caller) const;
  // Whether the options let a Call from there in.
  bool admits(const rpc::Origin& origin) const;
};

class Exports {
 public:
  // `id` comes from FileHandles::export_id(path). Fails for a path that is not absolute, has "." or
  // ".." components, is longer than MNTPATHLEN, or is there already.
  Result<Ok, ExportError> add(std::uint32_t id, std::string_view path,
                              std::shared_ptr<vfs::FileSystem> file_system,
                              const ExportOptions& options);

  // Null when there is none.
  const Export* find(std::uint32_t id) const;

  struct Match {
    const Export* found = nullptr;
    std::string_view rest;  // what follows the export's path in `path`, without a leading '/'
  };
  // The longest export whose path is a whole-component prefix of `path`.
  std::optional<Match> match(std::string_view path) const;

  const std::vector<std::unique_ptr<Export>>& all() const { return exports_; }

 private:
  std::vector<std::unique_ptr<Export>> exports_;
};

// The normal form of a path name, or nothing when it is not absolute or has a NUL, "." or ".."
// component.
std::optional<std::string> normal_path(std::string_view path);

}  // namespace stag::nfs
