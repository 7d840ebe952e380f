// The options of `stag serve`: those of the command line, and of the configuration file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/network.h"
#include "base/result.h"
#include "cli/serve/callbacks.h"
#include "cli/serve/control.h"
#include "cli/serve/copy_from.h"
#include "cli/serve/export_line.h"
#include "cli/serve/export_set.h"
#include "cli/serve/exports_file.h"
#include "cli/serve/id_mapping.h"
#include "cli/serve/kerberos.h"
#include "cli/serve/limits.h"
#include "cli/serve/nfs4_limits.h"
#include "cli/serve/observe_options.h"
#include "cli/serve/recovery.h"
#include "cli/support/arguments.h"
#include "cli/support/log.h"
#include "endpoint/options.h"

namespace stag::cli {

class ServeOptions {
 public:
  ServeOptions();
  // As ServeOptions() of a program that has CephFS, or has it not (serves_ceph()).
  explicit ServeOptions(bool ceph);
  void declare(Arguments& arguments);
  // Whether what is asked for is there; completes what was left open. The error is one sentence.
  Result<Ok, std::string> check();

  bool exports_are_in_file() const {
    return !exports_file.empty() || (export_texts.empty() && config.given());
  }
  // What the file says now; nothing where there is none. The error is one sentence.
  Result<std::vector<ExportsText>, std::string> read_exports_files() const;
  // With these settings of the configuration file. None where all have mp, and nothing is mounted
  // there. The name service is not asked for hosts.
  Result<std::vector<ExportLine>, ExportSet::Trouble> exports(
      const std::vector<Setting>& settings,
      const Result<std::vector<ExportsText>, std::string>& texts) const;
  // Says which exports of these settings do not count, on standard error.
  void tell_unused_exports(const std::vector<Setting>& settings) const;
  // Reads --exports-file anew.
  Result<std::vector<ExportLine>, ExportSet::Trouble> read_exports(
      const std::vector<Setting>& settings) const {
    return exports(settings, read_exports_files());
  }

  std::vector<std::string> export_texts;
  std::string exports_file;  // in the form of exports(5)
  std::vector<std::string> hosts;
  std::uint32_t rdma_port = endpoint::kRdmaPort;
  std::uint32_t tcp_port = endpoint::kTcpPort;
  std::uint32_t udp_port = 0;  // that of TCP
  std::optional<std::uint32_t> verbs_port;
  bool udp = true;
  bool nfs4 = true;
  bool rpcbind = false;
  std::uint32_t loops;
  std::uint32_t busy_poll_us = 0;
  std::uint32_t store_patience = 10;
  std::uint32_t drain = 10;
  bool take_over = false;
  bool check_only = false;
  std::vector<std::string> fabrics;
  std::string device;
  bool uses_devices() const;
  // Of listeners at RDMA devices.
  std::uint32_t device_port() const { return verbs_port.value_or(rdma_port); }
  rpc::rdma::ServerOptions rdma;
  std::vector<IpNetwork> allow;
  Limits limits;
  Nfs4Limits nfs4_limits;
  CallbackOptions callbacks;
  CopyFromOptions copy_from;
  // It is for clients of version 4.2, and they are told by a callback how a copy has ended.
  bool can_copy_from_servers() const { return nfs4 && callbacks.wanted(); }
  RecoveryOptions recovery;
  ControlSettings control;
  IdMappingOptions id_mapping;
  KerberosOptions kerberos;
  std::string rdma_netid;
  std::string state;
  std::string log_level = "warning";
  std::string log_format = "text";
  LogFormat log_form() const { return log_format == "json" ? LogFormat::Json : LogFormat::Text; }
  ObserveOptions observe;
  ConfigFile config;

 private:
  void declare_exports(Arguments& arguments);
  void declare_connections(Arguments& arguments);
  void declare_process(Arguments& arguments);
  Result<Ok, std::string> check_networks();
  // Those of --export, or else of these settings.
  Result<std::vector<ExportLine>, std::string> own_exports(
      const std::vector<Setting>& settings) const;
  // Leaves out those whose mount is not there. True: there were some.
  bool await_mounts(std::vector<ExportLine>& lines) const;

  bool ceph_;
  std::vector<std::string> allow_texts_;
};

}  // namespace stag::cli
