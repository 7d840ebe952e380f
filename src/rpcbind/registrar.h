// Registrar: registers the programs of a server with the rpcbind of this machine, and unregisters
// them at the end.
//
// rpcbind keeps one address for each program, version and netid, and refuses a second one. Entries
// of a server that crashed would block its next run; the Registrar removes them by the record that
// the server kept of them (to_text()). Entries of other programs stay: those may be running.
#pragma once

#include <string>
#include <vector>

#include "rpcbind/lookup.h"

namespace stag::rpcbind {

// Lines "program version netid address". Reading skips any other line.
std::string to_text(const std::vector<Registration>& registrations);
std::vector<Registration> from_text(std::string_view text);

class Registrar {
 public:
  // `channel` leads to the rpcbind of this machine: Debian's takes registrations at
  // /run/rpcbind.sock, and perhaps from 127.0.0.1. The channel outlives this object; each call is
  // made with `options`.
  explicit Registrar(rpc::Channel& channel, rpc::CallOptions options = {})
      : channel_(&channel), options_(options) {}

  // Registers all of `wanted`; on failure none, and the error says why in one sentence. First
  // removes the entries that equal one in `previous` or `wanted`: they are of an earlier run of
  // this server.
  Task<Result<Ok, std::string>> set(std::vector<Registration> wanted,
                                    std::vector<Registration> previous);

  // Unregisters the entries of set(). False: rpcbind did not answer, and the remaining entries stay
  // until a later set() gets them in `previous`.
  Task<bool> unset();

  const std::vector<Registration>& registered() const { return registered_; }

 private:
  Task<Result<Ok, std::string>> clear(const std::vector<Registration>& wanted,
                                      const std::vector<Registration>& previous);
  Task<Result<Ok, std::string>> set_one(Registration entry);
  Task<rpc::CallResult<bool>> remove(const Registration& entry);

  rpc::Channel* channel_;
  rpc::CallOptions options_;
  std::vector<Registration> registered_;
};

}  // namespace stag::rpcbind
