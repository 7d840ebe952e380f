// Url: the address of files on an NFS server, in one line:
//
//   nfs://host[:port]/export/path?version=2|3|4|4.0|4.1|4.2&proto=rdma|tcp&fabric=iwarp|verbs|auto&
//         mountport=N&rsize=N&wsize=N&sec=sys|krb5|krb5i|krb5p&port=rpcbind&rpcbindport=N&
//         uid=N&gid=N&connections=N&callback=tcp|ADDRESS[:PORT]
//
// The syntax follows libnfs. The path is taken byte for byte up to '?'; %XX stands for one byte. An
// IPv6 address stands in brackets. The options may come in any order, each once. With
// `port=rpcbind`, in place of a port behind the host, the client asks the server's rpcbind for the
// port of NFS (netids rdma and rdma6, or tcp and tcp6); `rpcbindport` is the port of rpcbind if it
// is not 111. Without `version` a Session speaks the highest version that both sides speak.
//
// Thread: any. A Url is a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/address.h"
#include "nfs/client/protocol/error.h"

namespace stag::nfs::client {

inline constexpr std::uint32_t kMostConnections = 16;

struct Url {
  // The values of proto= and fabric=: those of endpoint::Transport and endpoint::FabricKind.
  enum class Protocol : std::uint8_t { Rdma, Tcp };
  enum class Fabric : std::uint8_t { Iwarp, Verbs, Auto };
  // How the server learns who the user is: by the client's claim (AUTH_SYS), or by Kerberos, with
  // integrity (krb5i) or privacy (krb5p) of arguments and results.
  enum class Security : std::uint8_t { Sys, Krb5, Krb5i, Krb5p };

  std::string host;
  // Of NFS; nullopt: 20049 by RDMA (RFC 8267 section 9), 2049 by TCP.
  std::optional<std::uint16_t> port;
  bool port_from_rpcbind = false;
  std::string path = "/";  // absolute, decoded
  Protocol protocol = Protocol::Rdma;
  std::optional<Fabric> fabric;          // without: the program chooses; not used with proto=tcp
  std::optional<std::uint32_t> version;  // of NFS: 2, 3 or 4; without: the highest that both speak
  std::optional<std::uint32_t> minor;    // of version 4; without: the highest that both speak
  Security security = Security::Sys;
  std::optional<std::uint16_t> mount_port;
  std::optional<std::uint16_t> rpcbind_port;
  std::optional<std::uint32_t> read_size;  // bytes, above 0
  std::optional<std::uint32_t> write_size;
  std::optional<std::uint32_t> uid, gid;  // for AUTH_SYS, in place of the local user's
  // Where the client listens for callbacks of version 4.0: an address of this machine that the
  // server reaches, and a port (0: any). Versions with sessions need none.
  std::optional<Address> callback;
  // Callbacks of versions 4.1 and 4.2 come by a TCP connection of their own, to mount_address().
  bool callbacks_by_tcp = false;
  std::uint32_t connections = 1;  // that calls are spread over, up to kMostConnections

  // Fails with Kind::Url and a sentence that names the offending part.
  static Outcome<Url> parse(std::string_view text);

  // The address of the NFS service, where rpcbind is not asked.
  Address nfs_address() const;
  // The address of the MOUNT service, always TCP (RFC 8267 section 5.1), where rpcbind is not asked
  // or has no entry: `mount_port`, else the NFS port if that is TCP too, else 2049.
  Address mount_address() const;

  // Whether `text` begins like such a URL and is no local path.
  static bool looks_like(std::string_view text);
  friend bool operator==(const Url&, const Url&) = default;
};

// An absolute path without what it does not need: "/a//./b/" is "/a/b".
std::string tidy_path(std::string_view path);

// "nfs://host:port/path", the path encoded again and without options: for messages.
std::string to_string(const Url& url);

}  // namespace stag::nfs::client
