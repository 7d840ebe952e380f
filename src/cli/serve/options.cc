#include "cli/serve/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "cli/serve/ceph_export.h"
#include "cli/serve/export_remarks.h"
#include "cli/serve/exports_file.h"
#include "cli/serve/mount_point.h"
#include "cli/serve/process.h"
#include "cli/serve/wanted_sockets.h"
#include "cli/support/output.h"
#include "cli/support/remote.h"
#include "rpcbind/lookup.h"

namespace stag::cli {
namespace {

constexpr std::uint32_t kMaxPort = 65535;
constexpr std::uint32_t kMaxLoops = 256;
constexpr std::uint32_t kUsualLoops = 4;  // at most, unless told

}  // namespace

ServeOptions::ServeOptions() : ServeOptions(serves_ceph()) {}

ServeOptions::ServeOptions(bool ceph)
    : loops(std::clamp(std::thread::hardware_concurrency(), 1u, kUsualLoops)),
      rdma_netid(rpcbind::kRdma),
      state(default_state_directory()),
      ceph_(ceph) {}

void ServeOptions::declare_connections(Arguments& arguments) {
  arguments.texts("--allow", allow_texts_, "NETWORK",
                  "clients that may connect, by address: 192.0.2.0/24, 2001:db8::/32 [all]");
  declare_rdma(arguments, rdma.transport, rdma.credits);
  arguments.choices(
      "--fabric", fabrics, "FABRIC", {"iwarp", "verbs"},
      "where RDMA comes from: software iWARP over TCP, or RDMA devices (stag devices); "
      "given twice, a listener of each [iwarp]");
  arguments.number("--verbs-port", verbs_port, 1, kMaxPort,
                   "port of NFS over RDMA devices [that of --rdma-port]");
  arguments.text("--device", device, "NAME", "the only RDMA device to be used [all]");
  limits.declare(arguments);
  nfs4_limits.declare(arguments);
}

void ServeOptions::declare_exports(Arguments& arguments) {
  constexpr std::string_view kCeph =
      ", memory, or a directory of CephFS (ceph:PATH[?conf=FILE&id=NAME&fs=NAME&gateway=NAME])";
  arguments.texts(
      "--export", export_texts,
      fmt::format("/name=DIR|memory{}[,OPTION]...", ceph_ ? "|ceph:PATH" : ""),
      fmt::format(
          "a folder{} to export; options are those of "
          "exports(5): ro, rw, root_squash, no_root_squash, all_squash, anonuid=N, "
          "anongid=N, secure, insecure, sec=sys:krb5:krb5i:krb5p:none, fsid=N; no_rdma: over "
          "TCP only; at_once, "
          "offload: whether the threads that serve connections may use the folder's file "
          "system themselves [if it is on this machine]; nfs_only: no program here uses "
          "it; mp, mp=PATH: it is left out while nothing is mounted at the folder, or at PATH; "
          "client=CLIENT[:OPTION]... for each that may mount it: an address, a "
          "network, a host, a pattern of names (*.example.com) or a netgroup (@trusted) "
          "[all]",
          ceph_ ? kCeph : " or memory"));
}

void ServeOptions::declare(Arguments& arguments) {
  declare_exports(arguments);
  arguments.text(
      "--exports-file", exports_file, "FILE",
      "exports in the form of exports(5), such as /etc/exports, and in FILE.d/*.exports, "
      "with its defaults; read again on SIGHUP");
  arguments.texts("--listen", hosts, "ADDR",
                  "address to listen on [127.0.0.1]; 0.0.0.0 or :: for all. Only sec=krb5p "
                  "encrypts: beyond this machine, use it or trust the network");
  arguments.number("--rdma-port", rdma_port, 0, kMaxPort,
                   "port of NFS over RPC-over-RDMA; 0 takes a free one");
  arguments.number("--tcp-port", tcp_port, 0, kMaxPort,
                   "port of NFS, MOUNT, NFSACL, NLM and NSM over TCP; 0 takes a free one");
  arguments.number("--udp-port", udp_port, 0, kMaxPort,
                   "port of MOUNT, NLM and NSM over UDP, which some clients need; 0 takes the "
                   "number of --tcp-port");
  arguments.flag("--udp,!--no-udp", udp, "serve MOUNT, NLM and NSM over UDP [yes]");
  arguments.flag("--nfs4,!--no-nfs4", nfs4, "serve NFS 4.0, 4.1 and 4.2, too [yes]");
  callbacks.declare(arguments);
  copy_from.declare(arguments);
  recovery.declare(arguments);
  id_mapping.declare(arguments);
  kerberos.declare(arguments);
  declare_connections(arguments);
  arguments.flag("--rpcbind,!--no-rpcbind", rpcbind,
                 "register every program with the rpcbind of this machine [no]");
  arguments.text("--rdma-netid", rdma_netid, "NAME",
                 "netid of RPC-over-RDMA for rpcbind [rdma]; for IPv6 a 6 is added to it");
  arguments.text(
      "--state", state, "DIR",
      "directory for handle keys and counters, outside of every export [/var/lib/stag; without "
      "root $XDG_STATE_HOME/stag or ~/.local/state/stag]");
  control.declare(arguments);
  declare_process(arguments);
}

void ServeOptions::declare_process(Arguments& arguments) {
  arguments.number("--loops", loops, 1, kMaxLoops,
                   "threads that serve connections; each connection stays with one of them");
  arguments.number(
      "--busy-poll", busy_poll_us, 0, 1'000'000,
      "microseconds that an idle thread polls for work before it blocks; 0: up to 50, while "
      "that saves time (adaptive polling)");
  arguments.number("--store-patience", store_patience, 1, 3600,
                   "seconds that a folder's file system may take; beyond, the server logs it and "
                   "asks clients of the folder to try again later");
  arguments.number("--drain", drain, 0, 3600,
                   "seconds that calls in progress get at SIGTERM or SIGINT, and when another "
                   "server takes over; a second signal ends them at once");
  arguments.flag("--take-over", take_over,
                 "take the place of the server that runs with the same --state, if one does: its "
                 "listening sockets, and then its state; clients notice a moment's silence");
  arguments.flag(
      "--check", check_only,
      "serve nothing: look through settings and exports, say what is wrong with them, and "
      "end with 0 if nothing is; a server that runs is left alone, as are addresses, ports and "
      "devices; whether --state can be written is tried");
  arguments.config(
      "--config", config, {"export"},
      "settings by the names of these options: export = [\"/data=/srv/data\"], or "
      "tables [[export]]; SIGHUP reads it again: exports, and the settings that "
      "docs/operations.md lists, change at once, and the log names those that take a restart "
      "(SIGTERM and SIGINT end the server, SIGUSR1 and SIGUSR2 do nothing)");
  arguments.choice("--log-level", log_level, {"debug", "info", "warning", "error", "off"},
                   "least severe messages to log on standard error");
  arguments.choice("--log-format", log_format, {"text", "json"}, "lines of text or of JSON");
  observe.declare(arguments);
}

Result<Ok, std::string> ServeOptions::check() {
  if (fabrics.empty()) fabrics.push_back("iwarp");
  if (std::count(fabrics.begin(), fabrics.end(), fabrics.front()) > 1)
    return Failure{std::string("--fabric names each fabric once")};
  if (const auto checked = observe.check(); !checked) return checked;
  const bool word = rdma_netid.find_first_of(" \t\n.") == std::string::npos;
  if (rdma_netid.empty() || !word)
    return Failure{std::string("--rdma-netid takes a word without dots, like rdma")};
  if (rdma_port == tcp_port && rdma_port != 0)
    return Failure{fmt::format(
        "--rdma-port and --tcp-port are both {}; software iWARP listens on TCP, too, and needs a "
        "port of its own",
        rdma_port)};
  if (hosts.empty()) hosts.push_back("127.0.0.1");
  if (std::ranges::find(hosts, "") != hosts.end())
    return Failure{std::string("--listen '' is no address; 0.0.0.0 or :: stand for all")};
  // A listener at :: serves IPv4 too, and so occupies the port of one at 0.0.0.0.
  if (std::find(hosts.begin(), hosts.end(), "::") != hosts.end()) std::erase(hosts, "0.0.0.0");
  if (const auto apart = numeric_sockets_are_apart(*this); !apart) return apart;
  return check_networks();
}

bool ServeOptions::uses_devices() const {
  return std::ranges::count(fabrics, "verbs") != 0;
}

Result<Ok, std::string> ServeOptions::check_networks() {
  for (const std::string& text : allow_texts_) {
    const std::optional<IpNetwork> network = IpNetwork::parse(text);
    if (!network)
      return Failure{fmt::format(
          "--allow '{}' is no network; write one like 192.0.2.0/24 or 2001:db8::/32", text)};
    allow.push_back(*network);
  }
  if (const auto checked = copy_from.check(); !checked) return checked;
  if (copy_from.any() && !can_copy_from_servers())
    return Failure{fmt::format("--copy-from has no effect with {}; leave out one of the two",
                               nfs4 ? "--no-callbacks" : "--no-nfs4")};
  if (const auto checked = recovery.check(); !checked) return checked;
  return callbacks.check();
}

Result<std::vector<ExportLine>, std::string> ServeOptions::own_exports(
    const std::vector<Setting>& settings) const {
  if (export_texts.empty())
    for (const Setting& setting : settings)
      if (config.is_own(setting)) return parse_exports(config.path(), setting);
  std::vector<ExportLine> lines;
  for (const std::string& text : export_texts) {
    Result<ExportLine, std::string> line = parse_export(text);
    if (!line) return Failure{line.error()};
    lines.push_back(*std::move(line));
  }
  return lines;
}

void ServeOptions::tell_unused_exports(const std::vector<Setting>& settings) const {
  for (const Setting& setting : settings)
    if (!export_texts.empty() && config.is_own(setting))
      offer_error(fmt::format(
          "stag serve: {}the exports of this file do not count beside --export on the command line",
          place_in(config.path(), setting.line)));
}

bool ServeOptions::await_mounts(std::vector<ExportLine>& lines) const {
  return std::erase_if(lines, [&](ExportLine& line) {
           if (!line.mount_point) return false;
           const std::string& at = line.mount_point->empty() ? line.folder : *line.mount_point;
           AwaitedMount mount = awaited_mount(
               line.path, at, is_mount_point(at, std::chrono::seconds(store_patience)));
           if (!mount.remark.empty()) offer_error("stag serve: " + line.where + mount.remark);
           line.doubt = std::move(mount.doubt);
           return !mount.exported;
         }) != 0;
}

Result<std::vector<ExportsText>, std::string> ServeOptions::read_exports_files() const {
  if (exports_file.empty()) return std::vector<ExportsText>();
  return cli::read_exports_files(exports_file);
}

Result<std::vector<ExportLine>, ExportSet::Trouble> ServeOptions::exports(
    const std::vector<Setting>& settings,
    const Result<std::vector<ExportsText>, std::string>& texts) const {
  const auto wrong = [](std::string sentence) {
    return Failure{ExportSet::Trouble{std::move(sentence), Exit::Usage}};
  };
  auto own = own_exports(settings);
  if (!own) return wrong(own.error());
  tell_unused_exports(settings);
  std::vector<ExportLine> lines = *std::move(own);
  bool waits = await_mounts(lines);
  if (!texts) return wrong(texts.error());
  Result<ExportsFile, std::string> read =
      parse_exports_here(*texts, std::chrono::seconds(store_patience));
  if (!read) return wrong(read.error());
  for (const std::string& remark : read->remarks) offer_error("stag serve: " + remark);
  std::ranges::move(read->lines, std::back_inserter(lines));
  waits = waits || read->unmounted;
  if (lines.empty() && !waits)
    return wrong(
        "nothing to serve; say what with --export /name=DIR, --export /name=memory or "
        "--exports-file FILE");
  for (const ExportLine& line : lines)
    for (const std::string& remark : remarks_on(line)) offer_error("stag serve: " + remark);
  return lines;
}

}  // namespace stag::cli
