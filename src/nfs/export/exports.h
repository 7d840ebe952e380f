// What is served, and to whom as whom. An Export is a FileSystem under a path name with the options
// of exports(5), which may differ by the client's address. An Exports is filled and then never
// changes: a reload makes another one (export_table.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/network.h"
#include "base/result.h"
#include "oncrpc/message.h"
#include "rpc/authenticator.h"
#include "vfs/vfs.h"

namespace stag::nfs {

struct ExportOptions {
  bool read_only = false;
  bool root_squash = true;  // uid 0 and gid 0 become the anonymous ones
  bool all_squash = false;  // everybody becomes anonymous
  std::uint32_t anonymous_uid = 65534;
  std::uint32_t anonymous_gid = 65534;
  bool secure = false;  // TCP and UDP clients must use a port below 1024; not asked of RDMA clients
  // The security flavors (RFC 5531 8.2) that Calls may have, the preferred one first. Calls with
  // AUTH_NONE act as the anonymous user.
  std::vector<oncrpc::AuthFlavor> flavors = {oncrpc::AuthFlavor::AUTH_SYS,
                                             oncrpc::AuthFlavor::AUTH_NONE};
  friend bool operator==(const ExportOptions&, const ExportOptions&) = default;
};

// A sentence for the operator.
struct ExportError {
  std::string message;
};

// One of the words of exports(5): "ro", "anonuid=99", "sec=sys:none". Later words win over earlier
// ones.
Result<Ok, ExportError> apply_export_option(std::string_view word, ExportOptions& options);
// Several, comma-separated: "ro,root_squash,anonuid=99".
Result<ExportOptions, ExportError> parse_export_options(std::string_view text);

// The clients that an export is open to, and how. `network` is absent for "*", which is everybody.
struct ClientRule {
  std::string match;  // as the operator wrote it
  std::optional<IpNetwork> network;
  ExportOptions options;
  friend bool operator==(const ClientRule&, const ClientRule&) = default;
};

// `match` is "*", an address or a network.
Result<ClientRule, ExportError> make_client_rule(std::string_view match,
                                                 const ExportOptions& options);

// An export as the operator configures it.
struct ExportSpec {
  std::string path;
  std::shared_ptr<vfs::FileSystem> file_system;  // may serve several exports
  ExportOptions options;
  // Empty: open to everybody with `options`. Else to those that match only, each with the options
  // of the most specific match: the longest prefix, "*" last.
  std::vector<ClientRule> clients{};
  // Where the root lies on the server, by each of its names: absolute symbolic links that begin so
  // are followed when a path is mounted. Empty for a store that lies nowhere.
  std::vector<std::string> folders{};
};

struct Export {
  std::uint32_t id = 0;
  // The path in normal form: begins with '/', no "//", no trailing '/' (but for "/").
  ExportSpec spec;

  const std::string& path() const { return spec.path; }
  vfs::FileSystem& file_system() const { return *spec.file_system; }
  // The options for Calls from `origin`; null when the export is not open to it.
  const ExportOptions* options_for(const rpc::Origin& origin) const;
};

// The credentials that `caller` acts with, after squashing.
vfs::Credentials acting_as(const ExportOptions& options, const rpc::Caller& caller);

class Exports {
 public:
  // `id` comes from FileHandles::export_id(). Fails for a path that is not absolute, has "." or
  // ".." components, is longer than MNTPATHLEN, or is there already, and for a client named twice.
  Result<Ok, ExportError> add(std::uint32_t id, ExportSpec spec);

  // Null when there is none.
  const Export* find(std::uint32_t id) const;

  struct Match {
    const Export* found = nullptr;
    std::string_view rest;  // what follows the export's path in `path`, without a leading '/'
  };
  // The longest export whose path is a whole-component prefix of `path`.
  std::optional<Match> match(std::string_view path) const;

  const std::vector<Export>& all() const { return exports_; }

 private:
  std::vector<Export> exports_;
};

// The normal form of a path name, or nullopt when it is not absolute or has a NUL, "." or ".."
// component.
std::optional<std::string> normal_path(std::string_view path);

}  // namespace stag::nfs
