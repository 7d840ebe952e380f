// Exports: which file systems a server exports, to which clients, and as which users these act. An
// Export is a FileSystem under a path name with the options of exports(5), which may differ by the
// client's address.
//
// Thread: an Exports object is filled on one thread and read-only afterwards; a reload makes
// another one. Errors: an ExportError has a sentence for the operator.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/network.h"
#include "base/result.h"
#include "base/task.h"
#include "oncrpc/message.h"
#include "rpc/authenticator.h"
#include "vfs/vfs.h"

namespace stag::nfs::state {
struct FileKey;
}  // namespace stag::nfs::state

namespace stag::nfs {

class ClientNames;

struct ExportOptions {
  bool read_only = false;
  bool root_squash = true;  // uid 0 and gid 0 become the anonymous ids
  bool all_squash = false;  // every user and group becomes anonymous
  std::uint32_t anonymous_uid = 65534;
  std::uint32_t anonymous_gid = 65534;
  bool secure = false;  // TCP and UDP clients must use a port below 1024; RDMA clients need not
  bool rdma = true;     // false: TCP and UDP clients only
  // The security flavors (RFC 5531 section 8.2; those of Kerberos by their pseudo-flavors) that
  // Calls may have, the preferred one first. Calls with AUTH_NONE act as the anonymous user.
  std::vector<oncrpc::AuthFlavor> flavors = {oncrpc::AuthFlavor::AUTH_SYS,
                                             oncrpc::AuthFlavor::AUTH_NONE};
  // When flavors differ in their options: the options of each flavor, in the order of `flavors`;
  // all of them have the same `flavors`. The members above then say what every flavor may do. Empty
  // when the flavors do not differ.
  std::vector<ExportOptions> by_flavor{};

  // The options for Calls with this flavor.
  const ExportOptions& of(oncrpc::AuthFlavor flavor) const;
  friend bool operator==(const ExportOptions&, const ExportOptions&) = default;
};

struct ExportError {
  std::string message;  // a sentence for the operator
};

// Whether it is one of the pseudo-flavors of Kerberos.
bool is_kerberos(oncrpc::AuthFlavor flavor);
// The name of exports(5) of a flavor: "sys", "krb5i"; empty for one that exports cannot take.
std::string_view flavor_name(oncrpc::AuthFlavor flavor);
// The flavor with this name; nullopt: there is none.
std::optional<oncrpc::AuthFlavor> flavor_named(std::string_view name);

// Applies one word of exports(5) to `options`: "ro", "anonuid=99", "sec=krb5:sys". Fails for words
// that it does not know.
Result<Ok, ExportError> apply_export_option(std::string_view word, ExportOptions& options);
// Reads several words, comma-separated: "ro,root_squash,anonuid=99". Later words win over earlier
// ones.
Result<ExportOptions, ExportError> parse_export_options(std::string_view text);

// Some clients of an export, and their options.
struct ClientRule {
  std::string match;                 // as the operator wrote it
  std::optional<IpNetwork> network;  // nullopt: all clients ("*"), or `by_name`
  ExportOptions options;
  // The rules with the smallest rank go first, whatever their prefix.
  unsigned rank = 0;
  // `match` is a pattern of host names, or a netgroup. Only `stag serve` resolves these;
  // without `names`, which is internal, Exports::add() refuses the rule.
  bool by_name = false;
  std::shared_ptr<ClientNames> names{};

  bool same_clients(const ClientRule& other) const {
    return by_name || other.by_name ? match == other.match : network == other.network;
  }
  friend bool operator==(const ClientRule&, const ClientRule&) = default;
};

// `match` is "*", an address, a network, a pattern of host names such as "*.example.com", or
// "@NETGROUP". Fails for any other text.
Result<ClientRule, ExportError> make_client_rule(std::string_view match,
                                                 const ExportOptions& options);

// An export as the operator configures it.
struct ExportSpec {
  std::string path;
  std::shared_ptr<vfs::FileSystem> file_system;  // may serve several exports
  ExportOptions options;
  // Empty: the export is open to all clients with `options`. Else it is open to the clients that
  // match, each with the options of one match: that with the smallest rank, and among those the
  // most specific: the longest prefix, then patterns of names, netgroups, and "*" last.
  std::vector<ClientRule> clients{};
  // The paths of the root on the server: MOUNT follows absolute symbolic links that begin with one
  // of them. Empty for a store that has no path, as one in memory.
  std::vector<std::string> folders{};
};

// One exported tree.
struct Export {
  std::uint32_t id = 0;  // in its file handles
  // The path in normal form: begins with '/', no "//", no trailing '/' (but for "/").
  ExportSpec spec;
  // The same for exports in which equal vfs handles name the same object
  // (vfs::FileSystem::handle_space()).
  std::uint64_t store = 0;

  const std::string& path() const { return spec.path; }
  vfs::FileSystem& file_system() const { return *spec.file_system; }
  // What one client may do here.
  struct Terms {
    const ExportOptions* options = nullptr;  // owned by the Export; null: not open to the client
    bool undecided = false;  // a rule is by name, and the client's name is still being looked up
  };
  // The Terms of Calls from `origin`. Thread: the loop of `origin`.
  Terms terms_for(const rpc::Origin& origin) const;
  // The rule that Calls from `origin` have, whatever their transport and port; null where all have
  // the options of the export, and where none is for them. Undecided as Terms. Thread: likewise.
  struct RuleFound {
    const ClientRule* rule = nullptr;
    bool undecided = false;
  };
  RuleFound rule_for(const rpc::Origin& origin) const;
  // Ends when terms_for() is decided, or the look-up of the name has taken too long, or `at_most`.
  Task<void> settle(rpc::Origin origin, Duration at_most = Duration::max()) const;
};

// The credentials that `caller` acts with on an export with these options, after squashing.
vfs::Credentials acting_as(const ExportOptions& options, const rpc::Caller& caller);

// The exports of one configuration. Programs read them (NfsServer::exports()); NfsServer fills
// them.
class Exports {
 public:
  // Internal, as is remember(). Adds an export under the `id` that its file handles have. Fails
  // when the path is not absolute, has "." or ".." components, is longer than MNTPATHLEN (1024
  // bytes) or is exported already, when a client is named twice, and when one is `by_name` without
  // `names`.
  Result<Ok, ExportError> add(std::uint32_t id, ExportSpec spec);

  // Takes over from `before`, which these replace, the exports that these do not have, as removed.
  void remember(const Exports& before);

  // The export with this id; null when there is none.
  const Export* find(std::uint32_t id) const;
  // The removed export with this id: its path and store, without its file system. Null when none
  // was removed, or kMostRemoved others were removed since.
  const Export* find_removed(std::uint32_t id) const;
  // The path of the export with this id, present or removed; null when there is none.
  const std::string* path_of(std::uint32_t id) const;
  // Internal: whether the export that a file was reached by still has the file's store.
  bool serves(const state::FileKey& file) const;

  struct Match {
    const Export* found = nullptr;  // never null
    std::string_view rest;  // the part of `path` behind the export's path, without a leading '/'
  };
  // The export with the longest path that is a prefix of `path` by whole components; nullopt when
  // there is none. `rest` is a view of `path`.
  std::optional<Match> match(std::string_view path) const;

  // Rises with every replacement.
  std::uint32_t generation() const { return generation_; }
  const std::vector<Export>& all() const { return exports_; }
  const std::vector<Export>& removed() const { return removed_; }
  // Whether the path of one is below that of another.
  bool nested() const { return nested_; }

  static constexpr std::size_t kMostRemoved = 1024;

 private:
  std::vector<Export> exports_;
  std::vector<Export> removed_;  // the latest last
  bool nested_ = false;
  std::uint32_t generation_ = 0;
};

// The normal form of a path name, or nullopt when it is not absolute or has a NUL, "." or ".."
// component.
std::optional<std::string> normal_path(std::string_view path);

}  // namespace stag::nfs
