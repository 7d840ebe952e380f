#include "cli/serve/nfs4_limits.h"

#include <algorithm>

#include "nfs/session/session.h"
#include "vfs/posix/lease_limit.h"

namespace stag::cli {
namespace {

constexpr std::uint32_t kMost = 1u << 24;
constexpr std::uint32_t kMostSlots = 1024;
constexpr std::uint32_t kMostCourtesy = 30 * 24 * 60 * 60;
// What our own client counts on; Linux sends up to 8.
constexpr std::uint32_t kLeastOperations = nfs::session::Session::kOperations;
constexpr std::uint32_t kMostOperations = 1024;
constexpr std::uint32_t kMostCachedReply = 64 << 10;
constexpr std::uint64_t kLeastCaches = 1 << 20;
constexpr std::uint64_t kMostCaches = std::uint64_t{1} << 36;

}  // namespace

void Nfs4Limits::declare(Arguments& arguments) {
  nfs::state::ClientLimits& clients = options_.clients;
  nfs::state::StateLimits& states = options_.states;
  arguments.heading("Limits of NFS version 4");
  arguments.number("--nfs4-clients", clients.clients, 1, kMost,
                   "clients; beyond, those whose leases are over go, and new ones are asked to try "
                   "again later");
  arguments.number("--nfs4-clients-per-address", clients_of_address_, 1, kMost,
                   "of these, at one address [a quarter, and no more than it leaves free]");
  arguments.number("--nfs4-unconfirmed", clients.unconfirmed, 1, kMost,
                   "clients that have only named themselves; beyond, the oldest goes");
  arguments.number("--nfs4-sessions", clients.sessions, 1, kMostSlots, "sessions of one client");
  arguments.number("--nfs4-slots", clients.fore.max_requests, 1, kMostSlots,
                   "requests that a session may have in progress");
  arguments.number("--nfs4-operations", clients.fore.max_operations, kLeastOperations,
                   kMostOperations, "operations of one request");
  arguments.size("--nfs4-cached-reply", clients.fore.max_response_size_cached,
                 nfs::state::kLeastCachedReply, kMostCachedReply,
                 "bytes of a reply that a slot may keep for a retry");
  arguments.size("--nfs4-caches", clients.caches, kLeastCaches, kMostCaches,
                 "bytes of all these replies together; sessions get less as they fill");
  arguments.number("--nfs4-states-per-client", states.states_of_client, 16, kMost,
                   "opens and locks of one client");
  arguments.number("--nfs4-states", states.states, 16, kMost, "the same of all clients");
  arguments.number("--nfs4-states-per-address", states_of_address_, 16, kMost,
                   "of these, at one address [no more than it leaves free]");
  arguments.number("--nfs4-courtesy", options_.courtesy_seconds, 0, kMostCourtesy,
                   "seconds that a client keeps what it holds when its lease is over, unless "
                   "somebody else wants it");
  declare_delegations(arguments);
  arguments.number("--nfs4-copies", options_.copies, 0, kMostSlots,
                   "copies of all clients that go on after they were answered; beyond, a copy is "
                   "answered when it is done");
  arguments.number("--nfs4-copies-per-client", options_.copies_of_client, 0, kMostSlots,
                   "the same of one client");
  arguments.heading("");
}

void Nfs4Limits::declare_delegations(Arguments& arguments) {
  arguments.number("--nfs4-delegations", options_.states.delegations, 0, kMost,
                   "delegations of all clients; an address gets no more than it leaves free");
  arguments.number("--nfs4-local-delegations", local_delegations_, 0, kMost,
                   "of these, of files in folders that programs of this machine use, too (without "
                   "the option nfs_only of the export), with two descriptors each [an eighth of "
                   "the limit on open files]");
}

void Nfs4Limits::apply(nfs::nfs4::Nfs4Options& options) const {
  options.clients = options_.clients;
  options.clients.clients_of_address =
      clients_of_address_.value_or((options_.clients.clients + 3) / 4);
  // What is set is what an address gets.
  options.clients.shared_out = !clients_of_address_;
  options.states = options_.states;
  options.states.shared_out = !states_of_address_;
  options.states.states_of_address = states_of_address_.value_or((options_.states.states + 1) / 2);
  options.courtesy_seconds = options_.courtesy_seconds;
  options.copies = options_.copies;
  options.copies_of_client = options_.copies_of_client;
}

void Nfs4Limits::limit_local_delegations() const {
  if (local_delegations_) vfs::posix::limit_leases(*local_delegations_);
}

void Nfs4Limits::apply(rpc::tcp::ServerOptions& options) const {
  constexpr std::size_t kBesides = 16;
  const std::size_t slots = options_.clients.fore.max_requests;
  options.max_calls = std::max(options.max_calls, slots + kBesides);
}

}  // namespace stag::cli
