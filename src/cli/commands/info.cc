#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "cli/commands.h"
#include "cli/support/format.h"
#include "cli/support/json.h"
#include "cli/support/output.h"
#include "cli/support/remote.h"
#include "cli/support/services.h"
#include "nfs/client/session/mount.h"

namespace stag::cli {
namespace {

using nfs::client::Error;
using nfs::client::Url;

class Info final : public Command {
 public:
  About about() const override {
    return {"info", "show what a host serves: programs, ports and exports",
            "  stag info server\n  stag info --rdma-port 20050 --tcp-port 2050 127.0.0.1\n"};
  }
  void declare(Arguments& arguments) override {
    constexpr std::uint32_t kMax = 65535;
    arguments.number("--rdma-port", ports_.rdma, 1, kMax, "port of NFS over RDMA");
    arguments.number("--tcp-port", ports_.tcp, 1, kMax,
                     "port of NFS, MOUNT, NFSACL, NLM and NSM over TCP");
    arguments.number("--rpcbind-port", ports_.rpcbind, 1, kMax, "port of rpcbind");
    arguments.flag("--json", json_, "an object");
    remote_.declare(arguments);
    arguments.positional("HOST", host_, "name, address or URL");
  }
  Exit run() override {
    if (!Url::looks_like(host_)) return on_loop([this](Run& run) { return work(run); });
    const Outcome<Url> url = Url::parse(host_);
    if (!url) return failed(url.error());
    fabric_ = url->fabric;
    host_ = url->host;
    const bool tcp = url->protocol == Url::Protocol::Tcp;
    (tcp ? ports_.tcp : ports_.rdma) = url->nfs_address().port;
    ports_.tcp = url->mount_port.value_or(static_cast<std::uint16_t>(ports_.tcp));
    ports_.rpcbind = url->rpcbind_port.value_or(static_cast<std::uint16_t>(ports_.rpcbind));
    return on_loop([this](Run& run) { return work(run); });
  }

 private:
  Task<Exit> work(Run& run) {
    Findings findings = co_await look_for_services(run, host_, ports_, remote_, fabric_);
    if (run.cancel.cancelled()) co_return failed("interrupted");
    if (findings.services.empty())
      co_return failed(
          fmt::format("found no RPC program at {}; name its ports with --rdma-port, --tcp-port and "
                      "--rpcbind-port (the last one said: {})",
                      host_, findings.trouble));
    if (json_)
      print_json(findings);
    else
      print(findings);
    co_return Exit::Done;
  }

  static void print(const Findings& findings) {
    put("{:>9}  {:<10} {:<9} {:<7} {:>5}  {}\n", "program", "", "versions", "netid", "port",
        "known from");
    for (const Service& service : findings.services)
      put("{:>9}  {:<10} {:<9} {:<7} {:>5}  {}\n", service.program, program_name(service.program),
          service.versions, shown(service.netid), service.port,
          service.answered ? "its answer" : "rpcbind");
    if (!findings.exports) return;
    put("\nexports\n");
    for (const auto& [listed, flavors] : *findings.exports) {
      put("  {}", shown(listed.path));
      if (!flavors.empty()) put("  sec={}", fmt::join(flavors, ":"));
      for (const std::string& client : listed.clients) put("  {}", shown(client));
      put("\n");
    }
  }

  void print_json(const Findings& findings) const {
    Json services = Json::array();
    for (const Service& service : findings.services) {
      Json json;
      json.set("program", std::uint64_t{service.program})
          .set("name", program_name(service.program))
          .set("versions", service.versions)
          .set("netid", service.netid)
          .set("port", std::uint64_t{service.port})
          .set("answered", service.answered);
      services.add(std::move(json));
    }
    Json exports = Json::array();
    if (findings.exports)
      for (const auto& [listed, flavors] : *findings.exports) {
        Json clients = Json::array(), wanted = Json::array();
        for (const std::string& client : listed.clients) clients.add(client);
        for (const std::string& flavor : flavors) wanted.add(flavor);
        Json json;
        json.set_bytes("path", listed.path)
            .set("flavors", std::move(wanted))
            .set("clients", std::move(clients));
        exports.add(std::move(json));
      }
    Json json;
    json.set("host", host_).set("services", std::move(services)).set("exports", std::move(exports));
    put("{}\n", json.text());
  }

  RemoteOptions remote_{.timeout = 10};
  Ports ports_;
  std::optional<Url::Fabric> fabric_;
  bool json_ = false;
  std::string host_;
};

}  // namespace

std::unique_ptr<Command> make_info() {
  return std::make_unique<Info>();
}

}  // namespace stag::cli
