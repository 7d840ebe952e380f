// rpcbind: finds and registers the addresses of the programs of a host (RFC 1833). A program's
// version is registered under a netid (RFC 5665), the name of a transport: "tcp", "udp", "rdma"
// (RFC 8166 section 9) for IPv4, the same with a "6" behind for IPv6. A netid is any string:
// networks may have their own (RFC 8166 section 5).
//
// This module is a client only (lookup.h asks, registrar.h registers) and depends on no transport:
// the caller brings a Connector or a Channel to rpcbind, usually TCP to port 111. Thread: that of
// the Channel's loop.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rpc/client.h"

namespace stag::rpcbind {

inline constexpr std::uint16_t kPort = 111;

// Netids of the transports that Stag has.
inline constexpr std::string_view kTcp = "tcp";
inline constexpr std::string_view kUdp = "udp";
inline constexpr std::string_view kRdma = "rdma";

// The netid of `transport` on IPv4 or IPv6: "rdma", "rdma6".
std::string netid(std::string_view transport, bool ipv6);
// Those under which a client of `host` (numeric or a name) may find a service on `transport`, the
// likelier one first.
std::vector<std::string> netids_for(std::string_view transport, std::string_view host);

// One line of rpcbind's list.
struct Registration {
  std::uint32_t program = 0;
  std::uint32_t version = 0;
  std::string netid;
  std::string address;  // universal
  std::string owner{};  // as rpcbind names it; empty where rpcbind does not return it
};
// Whether both are of the same program, version, netid and address.
bool same(const Registration& a, const Registration& b);

struct Question {
  std::uint32_t program = 0;
  std::uint32_t version = 0;
  std::vector<std::string> netids;  // in the order of preference
};

struct Found {
  std::string netid;
  std::uint16_t port = 0;
};

struct Options {
  std::uint16_t port = kPort;
  // For the whole lookup, connecting included: short, because a firewall may drop the question
  // without an answer.
  Duration timeout = std::chrono::seconds(5);
  CancelToken cancel{};
};

// All that is registered; asks version 4, then 3.
Task<rpc::CallResult<std::vector<Registration>>> list(rpc::Channel& channel,
                                                      rpc::CallOptions options = {});

// Finds the port of the first of `question.netids` that is registered; fails with
// RpcProgramNotRegistered when none is.
//
// It searches the list of all registrations, because RPCBPROC_GETADDR answers for the transport
// that the question came by, whatever netid it names (RFC 1833 2.2.1), and for any version. Where
// there is no list (a port mapper of version 2), it asks GETADDR and PMAPPROC_GETPORT for the
// netids that they answer for.
Task<rpc::CallResult<Found>> lookup(rpc::Channel& channel, Question question,
                                    rpc::CallOptions options = {});

// The same, on a connection of its own to rpcbind at `host`.
Task<rpc::CallResult<Found>> lookup(rpc::Connector& connector, std::string host, Question question,
                                    Options options = {});

}  // namespace stag::rpcbind
