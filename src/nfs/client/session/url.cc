#include "nfs/client/session/url.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <vector>

#include "base/network.h"
#include "base/size.h"

namespace stag::nfs::client {
namespace {

constexpr std::string_view kScheme = "nfs://";
constexpr std::uint16_t kNfsRdmaPort = 20049;  // RFC 8267 section 9
constexpr std::uint16_t kNfsTcpPort = 2049;

using Parsed = Outcome<Ok>;

Failure<Error> wrong(std::string_view part, std::string_view why) {
  return Failure{Error::of_url("in the URL, " + std::string(part) + ": " + std::string(why))};
}

std::string quoted(std::string_view text) {
  return "'" + std::string(text) + "'";
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// A whole decimal number from 1 to `max`.
std::optional<std::uint32_t> number(std::string_view text, std::uint32_t max) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || value == 0 || value > max) return std::nullopt;
  return value;
}

Outcome<std::string> decoded(std::string_view path) {
  std::string out;
  for (std::size_t i = 0; i < path.size(); ++i) {
    char byte = path[i];
    if (byte == '%') {
      const int high = i + 1 < path.size() ? hex_digit(path[i + 1]) : -1;
      const int low = i + 2 < path.size() ? hex_digit(path[i + 2]) : -1;
      if (high < 0 || low < 0)
        return wrong("the path", "'%' must be followed by two hexadecimal digits; write it as %25");
      byte = static_cast<char>(high * 16 + low);
      i += 2;
    }
    if (byte == '\0') return wrong("the path", "a name cannot hold a zero byte");
    out.push_back(byte);
  }
  return out;
}

Parsed port_into(std::string_view name, std::string_view value,
                 std::optional<std::uint16_t>& port) {
  const auto parsed = number(value, std::numeric_limits<std::uint16_t>::max());
  if (!parsed) return wrong(name, quoted(value) + " is no port; give a number from 1 to 65535");
  port = static_cast<std::uint16_t>(*parsed);
  return Ok{};
}

Parsed size_into(std::string_view name, std::string_view value,
                 std::optional<std::uint32_t>& size) {
  constexpr std::uint32_t kMost = std::numeric_limits<std::int32_t>::max();
  const std::optional<std::uint64_t> bytes = parse_size(value);
  if (!bytes || *bytes == 0 || *bytes > kMost)
    return wrong(
        name, quoted(value) + " is no size from 1 byte to less than 2G; write 65536, 64K or 1MiB");
  size = static_cast<std::uint32_t>(*bytes);
  return Ok{};
}

Parsed id_into(std::string_view name, std::string_view value, std::optional<std::uint32_t>& id) {
  // chown(2) takes the largest number for "leave it".
  constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max() - 1;
  const auto parsed = value == "0" ? std::optional<std::uint32_t>(0) : number(value, kMost);
  if (!parsed) return wrong(name, quoted(value) + " is no number of a user or group");
  id = *parsed;
  return Ok{};
}

struct Version {
  std::string_view text;
  std::uint32_t version;
  std::optional<std::uint32_t> minor{};
};
constexpr Version kVersions[] = {{"2", 2},      {"3", 3},      {"4", 4},
                                 {"4.0", 4, 0}, {"4.1", 4, 1}, {"4.2", 4, 2}};

Parsed version(Url& url, std::string_view value) {
  const auto* found = std::ranges::find(kVersions, value, &Version::text);
  if (found == std::end(kVersions))
    return wrong("version", "NFS version " + quoted(value) +
                                " is not in this build; use version=4, 4.2, 4.1, 4.0, 3 or 2");
  url.version = found->version;
  url.minor = found->minor;
  return Ok{};
}
Parsed proto(Url& url, std::string_view value) {
  url.protocol = value == "tcp" ? Url::Protocol::Tcp : Url::Protocol::Rdma;
  if (value == "tcp" || value == "rdma") return Ok{};
  return wrong("proto", quoted(value) + " is unknown; use rdma or tcp");
}
Parsed fabric(Url& url, std::string_view value) {
  if (value == "iwarp") url.fabric = Url::Fabric::Iwarp;
  if (value == "verbs") url.fabric = Url::Fabric::Verbs;
  if (value == "auto") url.fabric = Url::Fabric::Auto;
  if (url.fabric) return Ok{};
  return wrong("fabric", quoted(value) + " is unknown; use iwarp, verbs or auto");
}
Parsed security(Url& url, std::string_view value) {
  constexpr std::pair<std::string_view, Url::Security> kFlavors[] = {
      {"sys", Url::Security::Sys},
      {"krb5", Url::Security::Krb5},
      {"krb5i", Url::Security::Krb5i},
      {"krb5p", Url::Security::Krb5p}};
  for (const auto& [name, flavor] : kFlavors) {
    if (name != value) continue;
    url.security = flavor;
    return Ok{};
  }
  return wrong("sec", quoted(value) + " is unknown; use sys, krb5, krb5i or krb5p");
}
Parsed mount_port(Url& url, std::string_view value) {
  return port_into("mountport", value, url.mount_port);
}
Parsed rpcbind_port(Url& url, std::string_view value) {
  return port_into("rpcbindport", value, url.rpcbind_port);
}
Parsed port(Url& url, std::string_view value) {
  url.port_from_rpcbind = true;
  if (value != "rpcbind")
    return wrong("port",
                 quoted(value) + " has its place behind the host; here stands port=rpcbind");
  if (url.port) return wrong("port", "the host has one already; leave it or port=rpcbind out");
  return Ok{};
}
Parsed read_size(Url& url, std::string_view value) {
  return size_into("rsize", value, url.read_size);
}
Parsed write_size(Url& url, std::string_view value) {
  return size_into("wsize", value, url.write_size);
}

Parsed user(Url& url, std::string_view value) {
  return id_into("uid", value, url.uid);
}
Parsed group(Url& url, std::string_view value) {
  return id_into("gid", value, url.gid);
}

// "tcp", or an address and perhaps a port.
Parsed callback(Url& url, std::string_view value) {
  url.callbacks_by_tcp = value == "tcp";
  if (url.callbacks_by_tcp) return Ok{};
  const bool bracket = value.starts_with('[');
  const std::size_t end = std::min(value.find(bracket ? ']' : ':'), value.size());
  const std::string_view host = value.substr(bracket ? 1 : 0, end - (bracket ? 1 : 0));
  std::string_view port = value.substr(std::min(end + (bracket ? 1 : 0), value.size()));
  const bool has_port = port.starts_with(':');
  const bool closed = !bracket || end < value.size();
  const bool good = IpAddress::parse(host).has_value() && closed && (port.empty() || has_port);
  if (!good)
    return wrong("callback",
                 quoted(value) + " is neither tcp nor a numeric address of this " +
                     "machine, perhaps with :PORT (an IPv6 address stands in brackets)");
  std::optional<std::uint16_t> number_of_port;
  if (has_port) {
    const Parsed parsed = port_into("the port of callback", port.substr(1), number_of_port);
    if (!parsed) return parsed;
  }
  url.callback = Address{std::string(host), number_of_port.value_or(0)};
  return Ok{};
}

Parsed connections(Url& url, std::string_view value) {
  const auto parsed = number(value, kMostConnections);
  if (!parsed) return wrong("connections", quoted(value) + " is no number from 1 to 16");
  url.connections = *parsed;
  return Ok{};
}

struct UrlOption {
  std::string_view name;
  Parsed (*take)(Url&, std::string_view value);
};
constexpr std::array kOptions{
    UrlOption{"version", version},
    UrlOption{"proto", proto},
    UrlOption{"fabric", fabric},
    UrlOption{"sec", security},
    UrlOption{"mountport", mount_port},
    UrlOption{"rsize", read_size},
    UrlOption{"wsize", write_size},
    UrlOption{"port", port},
    UrlOption{"rpcbindport", rpcbind_port},
    UrlOption{"uid", user},
    UrlOption{"gid", group},
    UrlOption{"callback", callback},
    UrlOption{"connections", connections},
};

Parsed take_option(Url& url, std::string_view text, std::vector<std::string_view>& seen) {
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  if (equals == std::string_view::npos)
    return wrong(quoted(text), "an option is written name=value; a ? in a path is %3F");
  if (std::find(seen.begin(), seen.end(), name) != seen.end())
    return wrong(quoted(name), "it is given twice");
  seen.push_back(name);
  for (const UrlOption& option : kOptions)
    if (option.name == name) return option.take(url, text.substr(equals + 1));
  return wrong(
      quoted(name),
      "no such option; there are version, proto, fabric, mountport, rsize, wsize, sec, port, "
      "rpcbindport, uid, gid, connections and callback; a ? in a path is %3F");
}

Parsed take_options(Url& url, std::string_view text) {
  std::vector<std::string_view> seen;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    const Parsed taken = take_option(url, text.substr(0, end), seen);
    if (!taken) return taken;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return Ok{};
}

// "host", "host:port", "[v6]", "[v6]:port"
Parsed take_authority(Url& url, std::string_view text) {
  if (text.find('@') != std::string_view::npos)
    return wrong("the host", "user names have no place there; the server is told the local user");
  std::string_view port;
  if (!text.empty() && text.front() == '[') {
    const std::size_t bracket = text.find(']');
    if (bracket == std::string_view::npos) return wrong("the host", "']' is missing");
    url.host = text.substr(1, bracket - 1);
    port = text.substr(bracket + 1);
    if (!port.empty() && port.front() != ':')
      return wrong("the host", "only a port may follow ']'");
  } else {
    const std::size_t colon = std::min(text.find(':'), text.size());
    url.host = text.substr(0, colon);
    port = text.substr(colon);
    if (port.find(':', std::min<std::size_t>(1, port.size())) != std::string_view::npos)
      return wrong("the host", "an IPv6 address stands in brackets: nfs://[::1]/export");
  }
  if (url.host.empty()) return wrong("the host", "it is missing; write nfs://HOST/EXPORT");
  if (port.empty()) return Ok{};
  return port_into("the port", port.substr(1), url.port);
}

bool same_letter(char a, char b) {
  const bool upper = a >= 'A' && a <= 'Z';
  return (upper ? static_cast<char>(a - 'A' + 'a') : a) == b;
}

}  // namespace

bool Url::looks_like(std::string_view text) {
  // RFC 3986 3.1: schemes are case-insensitive.
  return text.size() >= kScheme.size() &&
         std::equal(kScheme.begin(), kScheme.end(), text.begin(),
                    [](char wanted, char given) { return same_letter(given, wanted); });
}

Outcome<Url> Url::parse(std::string_view text) {
  if (!looks_like(text))
    return Failure{Error::of_url(quoted(text) + " is no NFS URL; write nfs://HOST/EXPORT/PATH")};
  text.remove_prefix(kScheme.size());
  const std::size_t question = std::min(text.find('?'), text.size());
  const std::size_t slash = std::min(text.find('/'), question);
  Url url;
  const Parsed authority = take_authority(url, text.substr(0, slash));
  if (!authority) return Failure{authority.error()};
  if (slash < question) {
    Outcome<std::string> path = decoded(text.substr(slash, question - slash));
    if (!path) return Failure{path.error()};
    url.path = std::move(*path);
  }
  const Parsed options = take_options(url, text.substr(std::min(question + 1, text.size())));
  if (!options) return Failure{options.error()};
  if (url.security != Url::Security::Sys && (url.uid || url.gid))
    return wrong("uid and gid", "with sec=krb5 the server knows who the user is");
  return url;
}

Address Url::nfs_address() const {
  return {host, port.value_or(protocol == Protocol::Rdma ? kNfsRdmaPort : kNfsTcpPort)};
}

Address Url::mount_address() const {
  const std::uint16_t usual = protocol == Protocol::Tcp ? nfs_address().port : kNfsTcpPort;
  return {host, mount_port.value_or(usual)};
}

std::string tidy_path(std::string_view path) {
  std::string tidied;
  while (!path.empty()) {
    const std::string_view name = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(name.size() + 1, path.size()));
    if (!name.empty() && name != ".") tidied.append("/").append(name);
  }
  return tidied.empty() ? "/" : tidied;
}

std::string to_string(const Url& url) {
  std::string text = std::string(kScheme) + to_string(url.nfs_address());
  constexpr std::string_view kHex = "0123456789ABCDEF";
  for (const char c : url.path) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > ' ' && byte < 0x7f && c != '%' && c != '?') {
      text.push_back(c);
    } else {
      text += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return text;
}

}  // namespace stag::nfs::client
