// Registrar: tells the rpcbind of this machine what a server serves, and takes it back at the end.
//
// rpcbind keeps one address for each program, version and netid, and refuses a second one. What a
// server that crashed left behind is in the way of its next run; it goes by the record that the
// server kept of it (to_text()). What another program registered stays: it may be alive.
#pragma once

#include <string>
#include <vector>

#include "rpcbind/lookup.h"

namespace stag::rpcbind {

// Lines "program version netid address". What is no such line is left out.
std::string to_text(const std::vector<Registration>& registrations);
std::vector<Registration> from_text(std::string_view text);

class Registrar {
 public:
  // `channel` leads to the rpcbind of this machine: Debian's takes registrations at
  // /run/rpcbind.sock, and perhaps from 127.0.0.1. The channel outlives this object; each call is
  // made with `options`.
  explicit Registrar(rpc::Channel& channel, rpc::CallOptions options = {})
      : channel_(&channel), options_(options) {}

  // Registers all of `wanted`, or nothing and says why in one sentence. Whatever is registered
  // exactly as in `previous` or `wanted` is ours from another time, and goes first.
  Task<Result<Ok, std::string>> set(std::vector<Registration> wanted,
                                    std::vector<Registration> previous);

  // Unregisters what set() registered. False: rpcbind did not answer, and what is left stays in its
  // list until a later set() is told of it.
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
