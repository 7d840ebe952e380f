// The listeners of `stag serve`: every transport at every address, the lines that say so, and their
// entries in rpcbind.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/observe/capture_file.h"
#include "cli/serve/announcement.h"
#include "cli/serve/device_ports.h"
#include "cli/serve/options.h"
#include "cli/serve/registration.h"
#include "cli/serve/served_sockets.h"
#include "endpoint/listener.h"
#include "rpc/server.h"

namespace stag::cli {

class Listeners {
 public:
  // All references outlive it. What goes over RDMA connections can be captured at `tap`.
  Listeners(const ServeOptions& options, rpc::Server& server, ServedSockets& sockets,
            std::shared_ptr<fabric::capture::Tap> tap)
      : options_(options), server_(server), sockets_(sockets), tap_(std::move(tap)) {}
  ~Listeners() { close(); }

  // Claims the sockets that open() will want, as far as `sockets` has inherited them; RDMA devices
  // have none. The error is one sentence.
  static Result<Ok, std::string> claim(const ServeOptions& options, ServedSockets& sockets);
  // Makes those that it has not inherited, too, as far as they can be made now.
  static Result<Ok, std::string> reserve(const ServeOptions& options, ServedSockets& sockets);
  // What serves.
  static std::shared_ptr<endpoint::Loops> make_loops(const ServeOptions& options);
  // Listens, registers, and says so; `first` is the export of the URLs that are printed. `ports`
  // have been got ready; null: none. The error is one sentence.
  Result<Ok, std::string> open(const ExportLine& first, DevicePorts* ports);
  // A sentence.
  static std::string cannot_listen_at_device(const Address& at, Reason why);
  std::vector<Loop*> loops() const;
  // Takes on `allow`, `stall-limit`, `max-chunk-bytes`, `max-connections` and
  // `connections-per-client` of these settings. Thread: none that is a loop's, while
  // nobody calls open() or close().
  void change(const ServeOptions& now);
  // Connections that are there are served on.
  void stop_accepting();
  // Ends every connection and waits for the Calls in progress. Further calls have no effect.
  void close();

 private:
  using Listener = endpoint::Listener;

  Result<Ok, std::string> start_capture();
  void end_capture();
  Result<Ok, std::string> listen_at(const std::string& host, const ExportLine& first,
                                    DevicePorts* ports);
  // One listener for each --fabric, before any other at that host.
  Result<std::vector<Listener>, std::string> listen_rdma(const std::string& host,
                                                         DevicePorts* ports) const;
  Result<Listener, std::string> listen_udp(const Address& tcp) const;
  // `option` is the one to be named when that fails.
  Result<Listener, std::string> listen(const Address& at, const endpoint::ListenOptions& options,
                                       std::string_view option) const;
  Result<Listener, Reason> listen_at_socket(const Address& at,
                                            const endpoint::ListenOptions& options) const;
  endpoint::ListenOptions listen_options(endpoint::Transport transport) const;
  // Addresses whose listeners share the limit on open files.
  std::size_t addresses() const { return options_.hosts.size() * options_.fabrics.size(); }
  void keep(Listener listener, rpc::TransportKind transport);
  Result<Ok, std::string> register_programs();

  const ServeOptions& options_;
  rpc::Server& server_;
  ServedSockets& sockets_;
  std::shared_ptr<endpoint::Loops> loops_;
  const std::shared_ptr<fabric::capture::Tap> tap_;
  std::unique_ptr<CaptureFile> capture_;  // null: no --capture
  std::string ready_;                     // said when all is
  std::vector<Listener> listeners_;
  std::vector<ServedAt> served_;
  std::unique_ptr<RegisteredPrograms> registered_;
};

}  // namespace stag::cli
