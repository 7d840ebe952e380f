// The commands of the control socket about clients: "clients", "opens", "locks" and "delegations"
// list (of one client, with a member "client"), "expire" ends a client, "revoke" takes away a
// stateid, or a lock by NLM (a member "lock"), or all that is held of an export that was removed (a
// member "export"). "awaited" lists whom a grace period waits for, which "end-grace" ends. Hosts
// with locks by NLM are among the clients and their locks among the locks. The rows are those of
// `stag clients --json`.
#pragma once

#include "cli/control/control_socket.h"
#include "nfs/lock/lock_service.h"
#include "nfs/v4/administration.h"

namespace stag::cli {

// Outlives the ControlSocket that has its commands. On the loop of that.
class ClientsCommands {
 public:
  // `locks`, of NLM, outlives it.
  ClientsCommands(nfs::nfs4::Administration clients, nfs::lock::LockService& locks)
      : clients_(clients), locks_(locks) {}
  void add_to(ControlCommands& commands);

 private:
  Task<std::string> list_clients(const ControlRequest& request, ControlReply& reply);
  Task<std::string> list_states(const ControlRequest& request, ControlReply& reply,
                                nfs::state::StateInfo::Type type);
  Task<std::string> expire(const ControlRequest& request, ControlReply& reply,
                           const ControlPeer& peer);
  Task<std::string> revoke(const ControlRequest& request, ControlReply& reply,
                           const ControlPeer& peer);
  Task<std::string> revoke_export(const std::string& given, ControlReply& reply,
                                  const ControlPeer& peer);
  Task<std::string> list_awaited(ControlReply& reply);
  Task<std::string> end_grace(ControlReply& reply, const ControlPeer& peer);

  std::string revoke_lock(const ControlRequest& request, const ControlPeer& peer);
  std::string expire_host(const nfs::lock::Client& host, const ControlPeer& peer);

  nfs::nfs4::Administration clients_;
  nfs::lock::LockService& locks_;
};

// The 12 bytes behind the seqid, as hexadecimal digits. The seqid is not of interest to an
// administrator: it counts changes.
std::string stateid_text(const nfs::state::Stateid& stateid);
std::optional<nfs::state::Stateid> parse_stateid(std::string_view text);

}  // namespace stag::cli
