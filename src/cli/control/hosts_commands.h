// The hosts that have locks by NLM, as rows beside the clients of version 4 (clients_commands.h). A
// host is named "ADDRESS/NAME" where a client has a number.
#pragma once

#include <optional>
#include <string>

#include "cli/control/control_socket.h"
#include "nfs/lock/lock_service.h"
#include "nfs/v4/administration.h"

namespace stag::cli {

// nullopt: it is no host's name.
std::optional<nfs::lock::Client> parse_host(std::string_view text);

// The name of a lock in a listing, 16 hexadecimal digits.
std::optional<nfs::lock::LockService::LockId> parse_lock(std::string_view text);

// Rows of all hosts, or of one. False: there is no such host.
bool list_hosts(const nfs::lock::LockService& locks, const std::optional<nfs::lock::Client>& only,
                ControlReply& reply);
// A row for each lock of all hosts, or of one. `clients` know the exports.
Task<void> list_host_locks(const nfs::lock::LockService& locks, nfs::nfs4::Administration clients,
                           std::optional<nfs::lock::Client> only, ControlReply& reply);

}  // namespace stag::cli
