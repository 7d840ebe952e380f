#include "cli/serve/announcement.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "cli/serve/process.h"
#include "endpoint/options.h"
#include "nfs/client/session/url.h"
#include "vfs/posix/posix.h"

namespace stag::cli {
namespace {

bool is_loopback(std::string_view host) {
  return host.starts_with("127.") || host == "::1" || host == "localhost";
}

// What a network is trusted with by the worst of what the exports take.
enum class Trust { Nothing, Data, Everything };

Trust trust_of(const std::vector<ExportLine>& exports) {
  Trust most = Trust::Nothing;
  const auto look = [&](const nfs::ExportOptions& options) {
    for (const oncrpc::AuthFlavor flavor : options.flavors)
      if (flavor != oncrpc::AuthFlavor::KRB5P)
        most = std::max(most, nfs::is_kerberos(flavor) ? Trust::Data : Trust::Everything);
  };
  for (const ExportLine& line : exports) {
    if (line.clients.empty()) look(line.options);
    for (const nfs::ClientRule& rule : line.clients) look(rule.options);
  }
  return most;
}

std::string_view warning(Trust trust) {
  switch (trust) {
    case Trust::Nothing:
      return {};
    case Trust::Data:
      return "note: data is encrypted for sec=krb5p only; {} is for a network that may see the "
             "rest\n";
    case Trust::Everything:
      break;
  }
  return "note: whoever reaches {} is believed who he says he is, and data is not encrypted; "
         "listen there in a trusted network only, or export with sec=krb5p\n";
}

// What a URL wants for the export; empty: nothing.
std::string security_of(const ExportLine& line) {
  const auto& flavors = line.options.flavors;
  if (std::ranges::count(flavors, oncrpc::AuthFlavor::AUTH_SYS)) return {};
  const auto kerberos = std::ranges::find_if(flavors, nfs::is_kerberos);
  return kerberos == flavors.end() ? "" : fmt::format("&sec={}", nfs::flavor_name(*kerberos));
}

}  // namespace

std::string announcement(const std::vector<ExportLine>& exports,
                         const std::vector<std::string>& hosts) {
  std::string lines;
  for (const ExportLine& line : exports)
    lines +=
        fmt::format("export: {} = {}{}\n", line.path, line.folder.empty() ? "memory" : line.folder,
                    line.options.read_only ? ", read-only" : "");
  if (vfs::PosixFileSystem::serves_all_as_one())
    lines += fmt::format("note: not run by root, so everything is done as user {}, whoever asks\n",
                         geteuid());
  const std::string_view beware = warning(trust_of(exports));
  for (const std::string& host : hosts)
    if (!is_loopback(host)) lines += fmt::format(fmt::runtime(beware), host);
  return lines;
}

std::string ready_lines(const ReadyAt& at, const ExportLine& first) {
  nfs::client::Url url;
  url.host = at.host == "0.0.0.0" || at.host == "::" ? host_name() : at.host;
  url.path = first.path;
  const std::string security = security_of(first);
  std::string lines;
  for (const ReadyAt::Rdma& rdma : at.rdma) {
    url.port = rdma.address.port;
    std::string options = rdma.fabric == "verbs" ? "&fabric=verbs" : "";
    if (at.tcp.port != endpoint::kTcpPort)
      options = fmt::format("&mountport={}{}", at.tcp.port, options);
    options += security;
    if (!options.empty()) options.front() = '?';
    lines += fmt::format("ready: RPC-over-RDMA  {}{}\n", to_string(url), options);
  }
  if (at.udp)
    lines += fmt::format("ready: UDP            {} for MOUNT, NLM and NSM\n", to_string(*at.udp));
  url.port = at.tcp.port;
  return lines + fmt::format("ready: TCP            {}?proto=tcp{}\n", to_string(url), security);
}

}  // namespace stag::cli
